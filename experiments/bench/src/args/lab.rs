//! The hidden verbs of `eke-bench`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use eke_model::units::Bytes;
use eke_slow_disk::Profile;

/// `eke-bench lab ...`: the processes that experiments start.
#[derive(Debug, Subcommand)]
pub enum Lab {
    /// Attach a slow block device until Ctrl-C
    #[command(
        after_help = "Example:\n  sudo eke-bench lab slow-disk --profile laptop\n  sudo eke-bench lab slow-disk --profile sd --measure"
    )]
    SlowDisk(SlowDisk),
    /// Run a session of viewers on a screen of its own; print one JSON object for each event
    #[command(
        after_help = "Example:\n  eke-bench lab session '{\"screen\": [1024, 768], \"viewer\": \"mupdf\", \"documents\": [\"/tmp/a.pdf\"], \"ballast\": {\"size\": 0, \"ratio\": 3}, \"merge_same_pages\": false, \"patience_s\": 10, \"acts\": [{\"do\": \"open\", \"document\": 0}]}'"
    )]
    Session {
        /// Enter this tree, with mounts of its own, before starting anything
        #[arg(long, value_name = "DIR")]
        chroot: Option<PathBuf>,
        /// The session, as JSON; @FILE reads a file, - standard input
        spec: String,
    },
    /// Run one launch of `eke bench startup`, or the second reader on its disk
    Startup {
        /// The task, as JSON
        task: String,
    },
    /// Send a line to a command that echoes it, ten times a second; print each time that was longer than all before, as JSON
    Echo {
        /// The command
        #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Draw a moving picture on $DISPLAY; print frames and seconds as JSON
    Picture {
        /// The time in milliseconds
        #[arg(value_name = "MS")]
        time: u64,
    },
    /// Open tabs of a browser with pages of a local web server, until one is killed or too slow
    Tabs {
        /// The task, as JSON
        spec: String,
    },
    /// Remove what killed experiments left: mounts, slow disks, directories
    Sweep,
    /// Serve the pages of the tabs on a port of 127.0.0.1, until Ctrl-C
    Pages {
        /// The number of tabs
        #[arg(long, default_value_t = 24, value_name = "N")]
        tabs: usize,
        /// The size of a document's part in each tab
        #[arg(long, default_value = "400K", value_name = "SIZE")]
        weight: Bytes,
        /// Directories with HTML documents [default: the system's documentation]
        #[arg(long, value_name = "DIR")]
        documents: Vec<PathBuf>,
    },
}

/// `eke-bench lab slow-disk`.
#[derive(Debug, ClapArgs)]
pub struct SlowDisk {
    #[arg(long, value_name = "DISK", value_parser = super::slow_disk, help = format!("The disk: {}; after a name may follow {}", Profile::NAMES.join(", "), Profile::SUFFIXES))]
    pub profile: String,
    /// Its size
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    pub size: Bytes,
    /// The image file, made if it does not exist [default: memory]
    #[arg(long, value_name = "FILE")]
    pub image: Option<PathBuf>,
    /// Measure the disk with fio, print nominal beside measured values, and end; overwrites the image
    #[arg(long)]
    pub measure: bool,
    /// Seconds for each measurement
    #[arg(long, default_value_t = 5, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=600))]
    pub seconds: u32,
}

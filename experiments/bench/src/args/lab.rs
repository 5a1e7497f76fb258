//! The hidden verbs of `eke-bench`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use eke_model::units::Bytes;

/// `eke-bench lab ...`: the processes that experiments start.
#[derive(Debug, Subcommand)]
pub enum Lab {
    /// A block device that is as slow as one says, until Ctrl-C
    #[command(
        after_help = "Example:\n  sudo eke-bench lab slow-disk --profile laptop\n  sudo eke-bench lab slow-disk --profile sd --measure"
    )]
    SlowDisk(SlowDisk),
    /// A session of viewers on a screen of its own, one JSON object for each event
    #[command(
        after_help = "Example:\n  eke-bench lab session '{\"screen\": [1024, 768], \"viewer\": \"mupdf\", \"documents\": [\"/tmp/a.pdf\"], \"ballast\": {\"size\": 0, \"ratio\": 3}, \"merge_same_pages\": false, \"patience_s\": 10, \"acts\": [{\"do\": \"open\", \"document\": 0}]}'"
    )]
    Session {
        /// Enter this tree, with mounts of its own, before anything is started
        #[arg(long, value_name = "DIR")]
        chroot: Option<PathBuf>,
        /// What is done, as JSON; @FILE: in this file; -: on standard input
        spec: String,
    },
    /// One launch of `eke bench startup`, or the other program on its disk
    Startup {
        /// What is to be done, as JSON
        task: String,
    },
    /// A moving picture on the display of the environment; frames and seconds as JSON
    Picture {
        /// Milliseconds
        #[arg(value_name = "MS")]
        time: u64,
    },
    /// Tabs of a browser with pages of a local web server, until one cannot be held
    Tabs {
        /// What is to be done, as JSON
        spec: String,
    },
    /// Removes what dead experiments left: mounts, slow disks, directories
    Sweep,
    /// The pages for that, on a port of 127.0.0.1, until Ctrl-C
    Pages {
        /// How many
        #[arg(long, default_value_t = 24, value_name = "N")]
        tabs: usize,
        /// How much of a document each shows
        #[arg(long, default_value = "400K", value_name = "SIZE")]
        weight: Bytes,
        /// Where the documents are (HTML); the system's documentation without it
        #[arg(long, value_name = "DIR")]
        documents: Vec<PathBuf>,
    },
}

/// `eke-bench lab slow-disk`.
#[derive(Debug, ClapArgs)]
pub struct SlowDisk {
    /// Which disk
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(eke_slow_disk::Profile::NAMES))]
    pub profile: String,
    /// Its size
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    pub size: Bytes,
    /// What lies in it (made if it is not there); memory without it
    #[arg(long, value_name = "FILE")]
    pub image: Option<PathBuf>,
    /// Measure it with fio, print nominal beside measured, and end; overwrites what lies in it
    #[arg(long)]
    pub measure: bool,
    /// Seconds of each figure
    #[arg(long, default_value_t = 5, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=600))]
    pub seconds: u32,
}

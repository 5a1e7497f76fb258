//! Every verb and option. Help, completions and the man page come from here.

mod bench;
mod bench_cache;
mod bench_io;
mod bench_link;
mod bench_startup;
mod bench_web;
mod cache;
mod dash;
mod io;
pub mod link;
pub mod prefetch;
mod top;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use eke_model::units::Bytes;

pub use bench::{Bench, Capacity, Experiment, Files, Of, Place, Show};
pub use bench_cache::{ReadsBench, StoreBench, TraceBench};
pub use bench_io::IoBench;
pub use bench_link::LinkBench;
pub use bench_startup::{NO_DISK, StartupBench};
pub use bench_web::{Server, WebBench};
pub use cache::{Cache, Mount as CacheMount};
pub use dash::{Dash, Metrics, MetricsFormat};
pub use io::{By as IoBy, Compare as IoCompare, Io, Load as IoLoad, Sweep as IoSweep, Watch as IoWatch};
pub use prefetch::Prefetch;
pub use top::Top;

const AFTER: &str = "Exit status: 0 done, 1 failed, 2 usage or configuration, 3 agent not reachable, 4 not permitted, 5 done in part.\n\
                     Everything that `up` changes, `down` puts back: also after a crash, also without the agent.";

/// Find what this machine is short of, pay for it with CPU, undo on request.
///
/// Without a verb: what this machine is short of, what eke does about it, what that gained.
#[derive(Debug, Parser)]
#[command(name = "eke", version, after_help = AFTER, max_term_width = 100, infer_subcommands = false)]
pub struct Args {
    /// Print one JSON document instead of text (schemas: `eke schema`)
    #[arg(long, global = true)]
    pub json: bool,
    /// Read this file instead of /etc/eke/eke.toml and /etc/eke/eke.toml.d
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<String>,
    /// Work on the tree below DIR instead of the running machine
    #[arg(long, global = true, value_name = "DIR", default_value = "/", hide = true)]
    pub root: PathBuf,
    /// What to do
    #[command(subcommand)]
    pub verb: Option<Verb>,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Measure and print the plan; leaves every setting as it is
    #[command(
        after_help = "Example:\n  eke plan                 the measured table and the plan with its reasons\n  eke plan --size 512M     what if the device were that large"
    )]
    Plan(Wish),
    /// Measure, apply the plan and stay: an agent watches it
    #[command(
        after_help = "Example:\n  sudo eke up && eke status\n  sudo eke down            puts everything back"
    )]
    Up(Up),
    /// Like up, shown live; Ctrl-C puts everything back
    #[command(after_help = "Example:\n  sudo eke run")]
    Run(Up),
    /// Put everything back, with the agent alive or dead
    #[command(
        after_help = "Example:\n  sudo eke down            exit status 5: something could not be undone yet, say it again later\n  sudo eke down --print    the undo as a shell script; changes nothing"
    )]
    Down {
        /// Print what would be done as a shell script instead of doing it
        #[arg(long)]
        print: bool,
    },
    /// Apply the plan at every boot
    #[command(after_help = "Example:\n  sudo eke enable && sudo eke up")]
    Enable,
    /// No longer at every boot; what is applied stays until `down`
    #[command(after_help = "Example:\n  sudo eke disable && sudo eke down")]
    Disable,
    /// What is applied, what it gains, and what was predicted
    #[command(after_help = "Example:\n  eke status\n  eke status --json | jq .model.saved")]
    Status,
    /// The same live, on the whole screen
    #[command(
        after_help = "Example:\n  eke top                  q quits, ? explains the words; nothing on the machine is changed\n  eke top --every 5s       over a slow line"
    )]
    Top(Top),
    /// The same live in a browser, with plots and the last day
    #[command(
        after_help = "Example:\n  eke dash                          http://127.0.0.1:7117\n  eke dash --listen 0.0.0.0:7117    for other machines, with a token\n\nIt needs no root and changes nothing. Ctrl-C ends it."
    )]
    Dash(Dash),
    /// The same for Prometheus, as OpenMetrics text
    #[command(
        after_help = "Example:\n  eke metrics                              once, on standard output\n  eke metrics --listen 127.0.0.1:7118      at /metrics, until Ctrl-C\n  eke metrics --format prometheus | promtool check metrics\n\nThe metrics are in docs/metrics.md, alerts to begin with in docs/alerts.example.yml."
    )]
    Metrics(Metrics),
    /// What this kernel can and cannot do for eke, each line with its reason
    #[command(after_help = "Example:\n  eke doctor")]
    Doctor {
        /// Print the table of every setting that eke can change (docs/knobs.md)
        #[arg(long)]
        knobs: bool,
    },
    /// What holds this machine's memory, by program, and what closing it returns
    #[command(
        after_help = "Example:\n  sudo eke advise          all programs; without root only yours\n  eke advise --most 5"
    )]
    Advise {
        /// How many programs
        #[arg(long, default_value_t = 15, value_name = "N")]
        most: usize,
    },
    /// Run a command in little memory
    #[command(
        after_help = "Example:\n  sudo eke box --memory 124M -- evince thesis.pdf\n\nThe compressed pool is charged to the box in proportion to its share of the swapped pages.\nExit status: the command's own; 137 if it was killed for want of memory."
    )]
    Box {
        /// The memory it may have: programs, their file pages and their share of the compressed pool
        #[arg(long, value_name = "SIZE")]
        memory: Bytes,
        /// The command and its arguments
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Before and after, in a minute, in a box on this machine
    #[command(after_help = "Example:\n  sudo eke demo")]
    Demo,
    /// The memory behaviour of a command, a process or the machine, as one SQLite file
    #[command(
        args_conflicts_with_subcommands = true,
        subcommand_negates_reqs = true,
        disable_help_subcommand = true,
        override_usage = "eke record [OPTIONS] -- COMMAND...\n       eke record [OPTIONS] --pid PID\n       eke record [OPTIONS] --system\n       eke record mark NAME",
        after_help = "Example:\n  eke record -- evince thesis.pdf\n  eke record mark \"open B.pdf\"     a named step begins, said in another terminal or by the command\n  eke report evince.sqlite          the recording as a page\n\nIt ends with the command or with Ctrl-C. Exit status: the command's own; 127 if there is no such command."
    )]
    Record(Record),
    /// A recording as a page with plots, as SVG, as CSV
    #[command(
        after_help = "Example:\n  eke report evince.sqlite                   writes evince.html\n  eke report evince.sqlite --svg plots --csv evince.csv\n  eke report evince.sqlite --json | jq .steps"
    )]
    Report(Report),
    /// Compressed swap beyond the plan
    #[command(subcommand)]
    Swap(Swap),
    /// A directory on a slow disk, served from memory that holds it compressed
    #[command(subcommand)]
    Cache(Cache),
    /// What programs read at launch, and what was read before they asked
    Prefetch(Prefetch),
    /// The fastest cipher of ssh that is still secure, measured on both ends
    #[command(
        after_help = "Example:\n  eke link web1                     measures it, and shows what would be written\n  sudo eke link web1 --write        also writes a Host block into /etc/ssh/ssh_config.d\n  sudo eke link pc01 pc02 --ltsp    on an LTSP server: the options of its clients\n  sudo eke link --undo              puts the files back\n\nIt takes about 20 s and 200 MB at most for each host, and one connection for each cipher. ssh asks for passwords\nitself, once for each; a key spares that. Below sudo, ssh runs as the user who called it.\nPolicies: modern (AES-GCM, ChaCha20-Poly1305 with strict key exchange on both ends, AES-CTR with encrypt-then-MAC of\n128 bits or more), fips (AES with HMAC-SHA-2). RC4, CBC, 3DES and none are never used."
    )]
    Link(link::Link),
    /// Disk latency by class, and what a setting changes about it
    #[command(subcommand)]
    Io(Io),
    /// An experiment, measured, as a table
    #[command(subcommand)]
    Bench(Bench),
    /// Completions for a shell, on standard output
    #[command(
        after_help = "Example:\n  eke completions bash | sudo tee /usr/share/bash-completion/completions/eke"
    )]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// The man page, on standard output
    #[command(after_help = "Example:\n  eke man | man -l -")]
    Man,
    /// The JSON schemas of everything that --json prints
    #[command(after_help = "Example:\n  eke schema status")]
    Schema {
        /// One of: plan, status, doctor, advise, box, demo, down, cache-mount, cache-status, cache-umount, prefetch-list, prefetch-show, prefetch-forget, prefetch-explain, prefetch-replay, prefetch-trace, link, link-undo, io-watch, io-compare, bench, record, report; all without it
        name: Option<String>,
    },
    /// A process with pages of its own (for experiments)
    #[command(hide = true)]
    Stressor {
        /// What it does, as JSON
        spec: String,
    },
    /// What experiments stand on
    #[command(subcommand, hide = true)]
    Lab(Lab),
}

/// `eke lab ...`.
#[derive(Debug, Subcommand)]
pub enum Lab {
    /// A block device that is as slow as one says, until Ctrl-C
    #[command(
        after_help = "Example:\n  sudo eke lab slow-disk --profile laptop\n  sudo eke lab slow-disk --profile sd --measure"
    )]
    SlowDisk(SlowDisk),
    /// A session of viewers on a screen of its own, one JSON object for each event
    #[command(
        after_help = "Example:\n  eke lab session '{\"screen\": [1024, 768], \"viewer\": \"mupdf\", \"documents\": [\"/tmp/a.pdf\"], \"ballast\": {\"size\": 0, \"ratio\": 3}, \"merge_same_pages\": false, \"patience_s\": 10, \"acts\": [{\"do\": \"open\", \"document\": 0}]}'"
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
    /// The far end of `eke link` without ssh: zeros, for who knows the token that it prints; until a line on standard input
    LinkEnd,
    /// Tabs of a browser with pages of a local web server, until one cannot be held
    Tabs {
        /// What is to be done, as JSON
        spec: String,
    },
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

/// `eke lab slow-disk`.
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

/// `eke record`.
#[derive(Debug, ClapArgs)]
#[command(group(clap::ArgGroup::new("subject").required(true).multiple(false).args(["command", "pid", "system"])))]
pub struct Record {
    /// `mark`
    #[command(subcommand)]
    pub verb: Option<RecordVerb>,
    /// The time between two samples (10ms to 1h)
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = eke_record::span::every)]
    pub every: Duration,
    /// The file; without it the command's name with .sqlite, in this directory
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace the file if it is there already
    #[arg(long)]
    pub force: bool,
    /// A process that runs already, and what it starts, until it ends
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// The machine alone, until Ctrl-C
    #[arg(long)]
    pub system: bool,
    /// With --pid or --system: end after this time
    #[arg(long = "for", value_name = "TIME", value_parser = eke_record::span::length, conflicts_with = "command")]
    pub at_most: Option<Duration>,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `eke record ...`.
#[derive(Debug, Subcommand)]
pub enum RecordVerb {
    /// A named step begins now, in the recording that runs
    #[command(
        after_help = "Example:\n  eke record mark \"open B.pdf\"\n\nBelow a recorded command that recording is meant (EKE_RECORDING), otherwise the only one of this user that runs."
    )]
    Mark {
        /// Its name
        name: String,
    },
}

/// `eke report`.
#[derive(Debug, ClapArgs)]
pub struct Report {
    /// The recording
    pub file: PathBuf,
    /// Write the page to this file; without any output option to FILE with .html
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write each figure to a file in this directory
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// Write the samples to this file
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Replace files that are there already
    #[arg(long)]
    pub force: bool,
}

/// What the user wishes beyond the configuration, for this once.
#[derive(Debug, Clone, Default, ClapArgs)]
pub struct Wish {
    /// Declare this size instead of the computed one (zram)
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Bytes>,
    /// The most RAM that compressed pages may take, in percent (10 to 90)
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(10..=90))]
    pub pool_percent: Option<u32>,
    /// Use this algorithm
    #[arg(long, value_name = "NAME")]
    pub algorithm: Option<String>,
    /// Use this back end
    #[arg(long, value_enum)]
    pub backend: Option<Backend>,
}

/// The back ends by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// By the kind of swap disk
    Auto,
    /// A compressed block device in RAM
    Zram,
    /// A compressed cache in front of a swap disk
    Zswap,
}

/// `up` and `run`.
#[derive(Debug, Clone, Default, ClapArgs)]
pub struct Up {
    /// The wish
    #[command(flatten)]
    pub wish: Wish,
    /// Hold writers back when reads wait for them for too long, whatever the configuration says
    #[arg(long)]
    pub govern_io: bool,
    /// At boot: use the figures of the last measurement, there is little to sample yet
    #[arg(long, hide = true)]
    pub boot: bool,
    /// Start the agent, or leave that to the init system
    #[arg(long, value_enum, default_value = "spawn", hide = true)]
    pub agent: AgentStart,
}

/// Who starts the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum AgentStart {
    /// `up` does
    #[default]
    Spawn,
    /// Somebody else does
    None,
}

/// `eke swap ...`.
#[derive(Debug, Subcommand)]
pub enum Swap {
    /// The same zswap from boot on: kernel command line and initramfs modules
    #[command(
        after_help = "Example:\n  eke swap boot-config              prints the changes\n  sudo eke swap boot-config --write makes them (boot loader: grub, systemd-boot, extlinux)\n  sudo eke swap boot-config --undo  puts the files back"
    )]
    BootConfig {
        /// Make the changes
        #[arg(long, conflicts_with = "undo")]
        write: bool,
        /// Put the files back as they were
        #[arg(long)]
        undo: bool,
        /// The algorithm instead of the planned one
        #[arg(long, value_name = "NAME")]
        compressor: Option<String>,
        /// The pool instead of the planned one, in percent of RAM
        #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=90))]
        max_pool_percent: Option<u32>,
    },
}

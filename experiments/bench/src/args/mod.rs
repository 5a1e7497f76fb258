//! Every verb and option of `eke-bench`. Help, completions and the man page come from here.

mod cache;
mod io;
mod lab;
mod link;
mod replay;
mod startup;
mod web;

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use eke_model::units::Bytes;
use eke_slow_disk::Profile;

pub use cache::{ReadsBench, StoreBench, TraceBench};
pub use io::IoBench;
pub use lab::{Lab, SlowDisk};
pub use link::LinkBench;
pub use replay::{Form, Replay, Scenario};
pub use startup::{NO_DISK, StartupBench};
pub use web::{Server, WebBench};

const PEERS: &str = "Beside eke: nothing, and what people use today (zram-tools, zram-generator, Fedora, ChromeOS), interleaved.\n\
                     What cannot be set up here is left out, and the result says why.";

/// The experiments of eke: each compares eke with its peers on this machine.
#[derive(Debug, Parser)]
#[command(
    name = "eke-bench",
    version,
    after_help = "`eke bench EXPERIMENT` is the same.\nExit status: 0 done, 1 failed, 2 usage, 4 not permitted.",
    max_term_width = 100
)]
pub struct Args {
    /// Print one JSON document instead of text (schemas: `eke-bench schema`)
    #[arg(long, global = true)]
    pub json: bool,
    /// Work on the tree below DIR instead of the running machine
    #[arg(long, global = true, value_name = "DIR", default_value = "/", hide = true)]
    pub root: PathBuf,
    /// Which experiment
    #[command(subcommand)]
    pub verb: Verb,
}

/// The experiments.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// The agent's resident set and idle CPU
    Agent {
        /// Seconds of each of the three runs
        #[arg(long, default_value_t = 20, value_name = "S")]
        seconds: u64,
    },
    /// Two documents browsed in little memory: seconds for page 1 to 50 and back
    #[command(
        after_help = format!("Example:\n  sudo eke bench paging --quick\n  sudo eke bench paging --output paging.json --html paging.html\n\n{PEERS}")
    )]
    Paging(Experiment),
    /// From asking for the other window until it is drawn, in little memory
    #[command(
        after_help = format!("Example:\n  sudo eke bench switch --quick\n  sudo eke bench switch --documents ~/papers --html switch.html\n\n{PEERS}")
    )]
    Switch(Experiment),
    /// How many documents (or tabs) can be opened and browsed before one is killed or too slow
    #[command(
        after_help = format!("Example:\n  sudo eke bench capacity --quick\n  sudo eke bench capacity --of tabs --html tabs.html\n  sudo eke bench capacity --in machine --output machine.json\n\n{PEERS}")
    )]
    Capacity(Capacity),
    /// The block store of the compressed page cache: hits, misses and insertions, beside memcpy, LZ4 and quick_cache
    #[command(
        after_help = "Example:\n  eke bench store --quick\n  eke bench store --corpus ~/files --html store.html"
    )]
    Store(StoreBench),
    /// Reads of files through a cache's mount: from its store and from the page cache over it, beside the files themselves
    #[command(
        after_help = "Example:\n  eke bench reads --quick\n  eke bench reads --dir /srv --corpus ~/files --html reads.html\n\nIt needs no root where fusermount3 is there. The files are removed at the end."
    )]
    Reads(ReadsBench),
    /// Which blocks should go: hit rates by policy, on traces by law or on recorded ones
    #[command(after_help = "Example:\n  eke bench trace --html trace.html\n  eke bench trace disk.csv")]
    Trace(TraceBench),
    /// A web server with too little memory for its files, on a disk of 2008: throughput, response times, disk reads
    #[command(
        after_help = "Example:\n  sudo eke bench web --quick\n  sudo eke bench web --corpus ~/silesia --output web.json --html web.html\n  sudo eke bench web --axes base,load --memory 800M\n\nBeside eke: ext4, ext4 with twice the memory, btrfs with zstd, EROFS with lz4hc. The images of the content are kept in\n~/.cache/eke-bench/web for the next time; for 1.7 GB they take 4 GB, and 8 GB more where the content is varied too."
    )]
    Web(Box<WebBench>),
    /// How long programs take to start: cold, warm, with preload, and with what eke read before
    #[command(
        after_help = "Example:\n  sudo eke bench startup --quick\n  sudo eke bench startup --output startup.json --html startup.html\n  sudo eke bench startup --programs gedit --disk laptop --variants cold,warm,preload\n\nThe image with the programs is kept in ~/.cache/eke-bench/startup for the next time; with all of them it takes 2 GB.\nWithout --quick it takes hours. What cannot be set up here is left out, and the result says why."
    )]
    Startup(Box<StartupBench>),
    /// The ciphers of ssh on links and CPUs of several kinds, each measured, and the one that `eke link` chooses
    #[command(
        after_help = "Example:\n  sudo eke bench link --quick\n  sudo eke bench link --output link.json --html link.html\n  sudo eke bench link --links 1g --cpus atom\n\nTwo network namespaces with a veth pair between them, an ssh server in one. The Atom-like CPU is a part of this one,\ncalibrated so that AES128-CTR does 30 MB/s."
    )]
    Link(LinkBench),
    /// A reader and a program's start beside writers on a slow disk: the kernel's default, schedulers, and eke's governor
    #[command(
        after_help = "Example:\n  sudo eke bench io --quick\n  sudo eke bench io --output io.json --html io.html\n  sudo eke bench io --writers btrfs --variants default,bfq,eke\n\nWithout --quick it takes two hours. What cannot be set up here is left out, and the result says why."
    )]
    Io(Box<IoBench>),
    /// What measuring disk latencies costs, at 10,000 requests a second
    #[command(after_help = "Example:\n  sudo eke bench io-overhead")]
    IoOverhead {
        /// Seconds
        #[arg(long, default_value_t = 15, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=600))]
        seconds: u64,
    },
    /// A saved result as a table, or as a page with plots
    #[command(
        after_help = "Example:\n  eke bench show capacity.json\n  eke bench show capacity.json --html capacity.html"
    )]
    Show(Show),
    /// Predictors beside each other on a trace: of what programs read, what was there before they asked, and what was in vain
    #[command(
        after_help = "Example:\n  sudo eke prefetch trace --output mine.csv && eke bench replay mine.csv\n  eke bench replay mine.csv --budget 64M --budget 128M\n  eke bench replay --scenario two-users         generated by rule, always the same\n\nThe form of a trace is in docs/prefetch-trace.md."
    )]
    Replay(Replay),
    /// Completions for a shell, on standard output
    #[command(
        after_help = "Example:\n  eke-bench completions bash | sudo tee /usr/share/bash-completion/completions/eke-bench"
    )]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the man page of eke-bench or of one experiment
    #[command(after_help = "Example:\n  eke-bench man web | man -l -")]
    Man {
        /// The experiment; without it the page of eke-bench
        #[arg(value_name = "EXPERIMENT")]
        verb: Vec<String>,
        /// Write all pages into this directory
        #[arg(long, value_name = "DIR", conflicts_with = "verb")]
        directory: Option<PathBuf>,
    },
    /// The JSON schemas of what --json prints
    #[command(after_help = "Example:\n  eke-bench schema")]
    Schema,
    /// A process with pages of its own, for experiments
    #[command(hide = true)]
    Stressor {
        /// What it does, as JSON
        spec: String,
    },
    /// What experiments are made of
    #[command(subcommand, hide = true)]
    Lab(Lab),
}

/// What the experiments share.
#[derive(Debug, Clone, ClapArgs)]
pub struct Experiment {
    /// Nothing, the best peer and eke only, under few conditions
    #[arg(long)]
    pub quick: bool,
    /// How often each is done; without it 3 times, with --quick and in the machine once. The table shows the median
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeats: Option<u32>,
    /// PDF files of your own, instead of those of the documentation packages
    #[arg(long, value_name = "DIR")]
    pub documents: Option<PathBuf>,
    /// The program that shows them
    #[arg(long, value_name = "NAME")]
    pub viewer: Option<String>,
    /// The memory that all programs have together; without it 124M, and for tabs 720M
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Bytes>,
    /// The disk that programs and documents lie on; none: this machine's own
    #[arg(long, default_value = "nfs", value_parser = PossibleValuesParser::new(disks()))]
    pub disk: String,
    /// Memory that stands for the rest of a desktop; without it as the experiment needs
    #[arg(long, value_name = "SIZE")]
    pub ballast: Option<Bytes>,
    /// Only these, as they are called in the table
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub variants: Vec<String>,
    /// Also eke with one thing of it changed, for each thing
    #[arg(long)]
    pub levers: bool,
    /// Where the result goes
    #[command(flatten)]
    pub files: Files,
}

/// Where a result goes, beside standard output.
#[derive(Debug, Clone, Default, ClapArgs)]
pub struct Files {
    /// Write the result with every sample to this file, as JSON
    #[arg(long, short, value_name = "FILE.json")]
    pub output: Option<PathBuf>,
    /// Write a page with plots to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Replace files that are there already
    #[arg(long)]
    pub force: bool,
}

/// `eke bench capacity`.
#[derive(Debug, Clone, ClapArgs)]
pub struct Capacity {
    /// What is opened
    #[arg(long, value_enum, default_value = "documents")]
    pub of: Of,
    /// Where
    #[arg(long = "in", value_enum, default_value = "box")]
    pub place: Place,
    /// The rest
    #[command(flatten)]
    pub experiment: Experiment,
}

/// What is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Of {
    /// PDF files in a viewer
    Documents,
    /// Pages of a local web server in a browser
    Tabs,
}

/// Where an experiment runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Place {
    /// In a box on this machine
    Box,
    /// In the small machine (QEMU): all peers, zswap too; its times are no times
    Machine,
}

/// `eke bench show`.
#[derive(Debug, ClapArgs)]
pub struct Show {
    /// What --output wrote
    #[arg(value_name = "FILE.json")]
    pub file: PathBuf,
    /// Write a page with plots to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Replace the file if it is there already
    #[arg(long)]
    pub force: bool,
}

/// The slow disks, and none.
fn disks() -> impl Iterator<Item = &'static str> {
    ["nfs"].into_iter().chain(Profile::NAMES.into_iter().filter(|n| *n != "nfs")).chain(["none"])
}

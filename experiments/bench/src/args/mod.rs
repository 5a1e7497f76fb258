//! Every verb and option of `eke-bench`. Help, completions and the man page come from here.

mod cache;
mod farm;
mod io;
mod lab;
mod link;
mod ltsp;
mod replay;
mod startup;
mod web;

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use eke_model::units::Bytes;
use eke_slow_disk::Profile;

pub use cache::{NamesBench, ReadsBench, StoreBench, TiersBench, TraceBench, WarmBench};
pub use farm::FarmBench;
pub use io::{DiskBench, IoBench};
pub use lab::{Lab, SlowDisk};
pub use link::LinkBench;
pub use ltsp::LtspBench;
pub use replay::{Form, Replay, Scenario};
pub use startup::{NO_DISK, StartupBench};
pub use web::{Server, WebBench};

const PEERS: &str = "The peers of eke: no swap, and what people use today (zram-tools, zram-generator, Fedora, ChromeOS). Runs are interleaved.\n\
                     A peer that cannot be set up here is left out; the result has the reason.";

/// Experiments that compare eke with its peers on this machine.
#[derive(Debug, Parser)]
#[command(
    name = "eke-bench",
    version,
    after_help = "`eke bench EXPERIMENT` does the same.\nExit status: 0 done, 1 failed, 2 usage, 4 not permitted.",
    max_term_width = 100
)]
pub struct Args {
    /// Print one JSON document instead of text (schemas: `eke-bench schema`)
    #[arg(long, global = true)]
    pub json: bool,
    /// Work on the tree below DIR instead of the running machine
    #[arg(long, global = true, value_name = "DIR", default_value = "/", hide = true)]
    pub root: PathBuf,
    /// The experiment
    #[command(subcommand)]
    pub verb: Verb,
}

/// The experiments.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Measure the agent's resident set and CPU time, idle and polled
    #[command(after_help = "Example:\n  eke bench agent")]
    Agent {
        /// Seconds for each of the three runs
        #[arg(long, default_value_t = 20, value_name = "S")]
        seconds: u64,
    },
    /// Page through two documents in little memory: seconds from page 1 to 50 and back
    #[command(
        after_help = format!("Example:\n  sudo eke bench paging --quick\n  sudo eke bench paging --output paging.json --html paging.html\n\n{PEERS}")
    )]
    Paging(Experiment),
    /// Switch between two windows in little memory: seconds until the other window is drawn
    #[command(
        after_help = format!("Example:\n  sudo eke bench switch --quick\n  sudo eke bench switch --documents ~/papers --html switch.html\n\n{PEERS}")
    )]
    Switch(Experiment),
    /// Count documents or browser tabs that can be used before one is killed or too slow
    #[command(
        after_help = format!("Example:\n  sudo eke bench capacity --quick\n  sudo eke bench capacity --of tabs --html tabs.html\n  sudo eke bench capacity --in machine --output machine.json\n\n{PEERS}")
    )]
    Capacity(Capacity),
    /// Let programs take all memory of a small machine: does it stay usable, and what is ended?
    #[command(
        after_help = "Example:\n  eke bench guard --quick\n  eke bench guard --repeats 5 --output guard.json --html guard.html\n\nIt needs no root, but QEMU, which `make setup` installs. A run takes one to three minutes; there are 30 in each round."
    )]
    Guard(GuardBench),
    /// Measure the block store of the cache: hits, misses and insertions, beside memcpy, LZ4 and quick_cache
    #[command(
        after_help = "Example:\n  eke bench store --quick\n  eke bench store --corpus ~/files --html store.html"
    )]
    Store(StoreBench),
    /// Measure reads through a cache's mount: from its store and from the page cache, beside reads of the files themselves
    #[command(
        after_help = "Example:\n  eke bench reads --quick\n  eke bench reads --dir /srv --corpus ~/files --html reads.html\n\nWith fusermount3 it needs no root. The files are removed at the end."
    )]
    Reads(ReadsBench),
    /// Measure find, ls and git through a cache's mount, beside the files themselves, and how soon a change below shows
    #[command(
        after_help = "Example:\n  eke bench names --quick\n  sudo eke bench names --dir /srv --number 300000 --html names.html\n\nOnly root's mounts are told of changes. With fusermount3 it needs no root. The files are removed at the end."
    )]
    Names(NamesBench),
    /// Measure what a cache has again a minute after an unmount, and what that costs another reader of the disk
    #[command(
        after_help = "Example:\n  sudo eke bench warm --quick\n  sudo eke bench warm --output warm.json --html warm.html\n\nIt makes a slow disk with files of its own, and removes it at the end. Without --quick it takes 25 minutes."
    )]
    Warm(WarmBench),
    /// Compare hit rates of eviction policies, on generated or recorded traces
    #[command(after_help = "Example:\n  eke bench trace --html trace.html\n  eke bench trace disk.csv")]
    Trace(TraceBench),
    /// Model a page cache over a compressed store: every way to use both, over a grid of content, working set, requests, files and disks
    #[command(
        after_help = "Example:\n  eke bench tiers --quick\n  eke bench tiers --output tiers.json --html tiers.html\n\nIt is a model and takes minutes: throughput and response times are estimates, for the choice of what to measure."
    )]
    Tiers(TiersBench),
    /// Measure a web server with too little memory for its files, on a disk of 2008: throughput, response times, disk reads
    #[command(
        after_help = "Example:\n  sudo eke bench web --quick\n  sudo eke bench web --corpus ~/silesia --output web.json --html web.html\n  sudo eke bench web --axes base,load --memory 800M\n  sudo eke bench web --grid --output grid.json\n\nThe peers of eke: ext4, ext4 with twice the memory, btrfs with zstd, EROFS with lz4hc. The images of the content stay in ~/.cache/eke-bench/web for the next time. For 1.7 GB of content they take 4 GB, and 8 GB more if the content is varied, too."
    )]
    Web(Box<WebBench>),
    /// Measure four web servers on one slow origin: each alone, with eke, with the tier that they share, and while parts fail
    #[command(
        after_help = "Example:\n  sudo eke bench farm --quick\n  sudo eke bench farm --output farm.json --html farm.html\n  sudo eke bench farm --variants eke,shared,faults --memory 256M\n\nThe peers of eke: nginx proxy_cache on this machine's disk, and Varnish. Each host is a network namespace with a link of 1 Gb/s; the engine is a cluster of three Valkey or Redis servers. Without --quick it takes a quarter of an hour. A variant that cannot be set up here is left out; the result has the reason."
    )]
    Farm(Box<FarmBench>),
    /// Measure program starts: cold, warm, with preload, and with eke's prefetching
    #[command(
        after_help = "Example:\n  sudo eke bench startup --quick\n  sudo eke bench startup --output startup.json --html startup.html\n  sudo eke bench startup --programs gedit --disk laptop --variants cold,warm,preload\n\nThe image with the programs stays in ~/.cache/eke-bench/startup for the next time. It takes 2 GB, with --all 5 GB.\nWithout --quick the experiment takes hours. Programs and variants that cannot be set up here are left out; the result has the reasons."
    )]
    Startup(Box<StartupBench>),
    /// Measure every cipher of ssh on several links and CPUs, and the one that `eke link` chooses
    #[command(
        after_help = "Example:\n  sudo eke bench link --quick\n  sudo eke bench link --output link.json --html link.html\n  sudo eke bench link --links 1g --cpus atom\n\nA veth pair joins two network namespaces; an ssh server runs in one. The Atom-like CPU is a share of this one, calibrated so that AES128-CTR reaches 30 MB/s."
    )]
    Link(LinkBench),
    /// Boot clients of an LTSP server over an emulated network: documents held, page turns, traffic, and a load, with and without eke
    #[command(
        after_help = "Example:\n  sudo eke bench ltsp --quick\n  sudo eke bench ltsp --output ltsp.json --html ltsp.html\n\nServer and clients are Debian, made once by mmdebstrap in ~/.cache/eke-bench/ltsp (1.5 GB), and run in QEMU and a network namespace. Without --quick the experiment takes two hours. The same command continues an interrupted experiment."
    )]
    Ltsp(Box<LtspBench>),
    /// Measure read latency and program starts beside writers on a slow disk: the kernel's default, schedulers, and eke's governor
    #[command(
        after_help = "Example:\n  sudo eke bench io --quick\n  sudo eke bench io --output io.json --html io.html\n  sudo eke bench io --writers btrfs --variants default,bfq,eke\n\nWithout --quick the experiment takes an hour and a half for each writer; with --warm-up 15 --seconds 20 less than one. The same command continues an interrupted one. A variant that this kernel lacks is left out; the result has the reason."
    )]
    Io(Box<IoBench>),
    /// Compare a simulated disk with what is published of a real one, by fio: orders of requests, depths, writes
    #[command(after_help = "Example:\n  sudo eke bench disk --output disk.json --html disk.html")]
    Disk(DiskBench),
    /// Measure the cost of tracing disk latencies, at 10,000 requests per second
    #[command(after_help = "Example:\n  sudo eke bench io-overhead")]
    IoOverhead {
        /// Seconds
        #[arg(long, default_value_t = 15, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=600))]
        seconds: u64,
    },
    /// Show a saved result as a table, or as a page with plots
    #[command(
        after_help = "Example:\n  eke bench show capacity.json\n  eke bench show capacity.json --html capacity.html"
    )]
    Show(Show),
    /// Compare predictors on a trace: the share of reads that was prefetched, and the share of prefetched bytes that was not used
    #[command(
        after_help = "Example:\n  sudo eke prefetch trace --output mine.csv && eke bench replay mine.csv\n  eke bench replay mine.csv --budget 64M --budget 128M\n  eke bench replay --scenario two-users         generated, always the same\n\ndocs/prefetch-trace.md describes the format of a trace."
    )]
    Replay(Replay),
    /// Print completions for a shell
    #[command(
        after_help = "Example:\n  eke-bench completions bash | sudo tee /usr/share/bash-completion/completions/eke-bench"
    )]
    Completions {
        /// The shell
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
    /// Print the JSON schemas of the output with --json
    #[command(after_help = "Example:\n  eke-bench schema")]
    Schema,
    /// Use memory, for experiments
    #[command(hide = true)]
    Stressor {
        /// Its task, as JSON
        spec: String,
    },
    /// Processes that experiments start
    #[command(subcommand, hide = true)]
    Lab(Lab),
}

/// The options of experiments in little memory.
#[derive(Debug, Clone, ClapArgs)]
pub struct Experiment {
    /// Run only a few variants, once each
    #[arg(long)]
    pub quick: bool,
    /// Number of rounds; the table shows medians [default: 3; 1 with --quick and in the machine]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeats: Option<u32>,
    /// Use the PDF files in this directory instead of those of the documentation packages
    #[arg(long, value_name = "DIR")]
    pub documents: Option<PathBuf>,
    /// The viewer of the documents
    #[arg(long, value_name = "NAME")]
    pub viewer: Option<String>,
    /// The memory of all programs together [default: 124M; 720M for tabs]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Bytes>,
    #[arg(long, value_name = "DISK", default_value = "nfs", value_parser = disk, help = format!("The slow disk with the programs and documents: {DISKS}; none: this machine's own disk"))]
    pub disk: String,
    /// Memory that stands for the rest of a desktop [default: chosen by the experiment]
    #[arg(long, value_name = "SIZE")]
    pub ballast: Option<Bytes>,
    /// Run only these variants, by their names in the table
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub variants: Vec<String>,
    /// Run eke with one thing changed as well, for each thing
    #[arg(long)]
    pub variations: bool,
    /// The files of the result
    #[command(flatten)]
    pub files: Files,
}

/// The files of a result, beside standard output.
#[derive(Debug, Clone, Default, ClapArgs)]
pub struct Files {
    /// Write the result with every sample to this file, as JSON
    #[arg(long, short, value_name = "FILE.json")]
    pub output: Option<PathBuf>,
    /// Write a page with plots to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
}

/// `eke bench capacity`.
#[derive(Debug, Clone, ClapArgs)]
pub struct Capacity {
    /// What to open
    #[arg(long, value_enum, default_value = "documents")]
    pub of: Of,
    /// Where to run
    #[arg(long = "in", value_enum, default_value = "box")]
    pub place: Place,
    /// The small machine's kernel: that of this suite of Debian, such as trixie or sid [default: that of this machine's suite]
    #[arg(long, value_name = "SUITE", value_parser = suite)]
    pub kernel_of: Option<String>,
    /// The common options
    #[command(flatten)]
    pub experiment: Experiment,
}

/// It becomes a part of paths and of apt's sources.
fn suite(name: &str) -> Result<String, String> {
    let is_suite = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    is_suite.then(|| name.to_owned()).ok_or_else(|| "a suite of Debian, such as trixie".to_owned())
}

/// `eke bench guard`.
#[derive(Debug, Clone, ClapArgs)]
pub struct GuardBench {
    /// Only the kernel and eke, with two loads
    #[arg(long)]
    pub quick: bool,
    /// Rounds
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeats: u32,
    /// RAM of the small machine in MiB
    #[arg(long, default_value_t = 256, value_name = "MIB", value_parser = clap::value_parser!(u32).range(124..=4096))]
    pub memory_mib: u32,
    /// The result's files
    #[command(flatten)]
    pub files: Files,
}

/// What to open.
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
    /// A box on this machine
    Box,
    /// The small machine (QEMU): all peers, also zswap; its times are not comparable with those of real machines
    Machine,
}

/// `eke bench show`.
#[derive(Debug, ClapArgs)]
pub struct Show {
    /// A file written by --output
    #[arg(value_name = "FILE.json")]
    pub file: PathBuf,
    /// Write a page with plots to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
}

/// What options that take a disk accept.
const DISKS: &str = "laptop, sd, nfs, scsi2008, nfs1g or sata, as in `laptop+ncq+mq-deadline+readahead=512`: `eke-bench lab slow-disk --help`";

/// A slow disk by its name.
fn slow_disk(text: &str) -> Result<String, String> {
    let profile = Profile::named(text).map(|profile| profile.name);
    let (names, suffixes) = (Profile::NAMES.join(", "), Profile::SUFFIXES);
    profile.ok_or_else(|| format!("there are {names}; after a name may follow {suffixes}"))
}

/// A slow disk by its name, or `none`.
fn disk(text: &str) -> Result<String, String> {
    if text == NO_DISK { Ok(text.to_owned()) } else { slow_disk(text) }
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory, Parser};

    use super::Args;

    /// `eke-bench` and all verbs that the help lists.
    fn all(command: Command) -> Vec<Command> {
        let verbs: Vec<Command> =
            command.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned().collect();
        std::iter::once(command).chain(verbs.into_iter().flat_map(all)).collect()
    }

    /// The help is wrapped where it is printed: a line end within a paragraph would be a second one.
    #[test]
    fn every_verb_has_an_example_and_its_paragraphs_are_whole() {
        for verb in all(Args::command()) {
            let (name, text) = (verb.get_name(), verb.get_after_help().map(ToString::to_string));
            let text = text.unwrap_or_default();
            assert!(name == "eke-bench" || text.starts_with("Example:\n"), "{name} has no example");
            for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with("  ")) {
                assert!(line.ends_with(['.', ':']), "{name}: {line}");
            }
        }
    }

    #[test]
    fn every_command_of_make_evidence_exists_and_all_take_a_night() {
        let list = eke_evidence::list::parse(include_str!("../../../evidence/experiments.toml")).unwrap();
        for experiment in &list {
            for corpus in [Some("/corpus"), None] {
                let words = [vec!["eke-bench".to_owned()], experiment.words(corpus)].concat();
                let output = ["--output".to_owned(), experiment.result.clone()];
                Args::try_parse_from(words.iter().chain(&output))
                    .unwrap_or_else(|e| panic!("{words:?}: {e}"));
            }
        }
        let minutes: u64 = list.iter().map(|e| e.minutes).sum();
        assert!(minutes <= 8 * 60, "{minutes} minutes");
    }
}

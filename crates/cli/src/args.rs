//! Every verb and option. Help, completions and the man page come from here.

mod cache;
mod dash;
mod io;
pub mod link;
pub mod ltsp;
pub mod prefetch;
mod shared;
mod top;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use eke_model::units::Bytes;

pub use cache::{Cache, Mount as CacheMount, Served as CacheServed};
pub use dash::{Dash, Metrics, MetricsFormat};
pub use io::{By as IoBy, Compare as IoCompare, Io, Load as IoLoad, Sweep as IoSweep, Watch as IoWatch};
pub use prefetch::Prefetch;
pub use shared::SharedTierArgs;
pub use top::Top;

const AFTER: &str = "Exit status: 0 done, 1 failed, 2 usage or configuration, 3 agent not reachable, 4 not permitted, 5 done in part, 6 not installed.\n\
                     `eke down` restores everything that `eke up` changed, also after a crash and without the agent.";

/// Finds what this machine is short of, pays for it with CPU time, and undoes it on request.
///
/// Without a verb, eke prints what is scarce, what eke does about it, and what that gained.
#[derive(Debug, Parser)]
#[command(name = "eke", version, after_help = AFTER, max_term_width = 100, infer_subcommands = false)]
pub struct Args {
    /// Print one JSON document, for verbs that have a schema (`eke schema`)
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
    /// Measure and print the plan; change nothing
    #[command(
        after_help = "Example:\n  eke plan                 the measurements and the plan with its reasons\n  eke plan --size 512M     the plan for a device of that size"
    )]
    Plan(Overrides),
    /// Measure, apply the plan, and leave an agent to watch it
    #[command(
        after_help = "Example:\n  sudo eke up && eke status\n  sudo eke down            restores everything"
    )]
    Up(Up),
    /// Like `up`, shown live; Ctrl-C restores everything
    #[command(after_help = "Example:\n  sudo eke run")]
    Run(Up),
    /// Restore everything, with the agent alive or dead
    #[command(
        after_help = "Example:\n  sudo eke down            exit status 5: something could not be undone yet; run it again later\n  sudo eke down --print    the undo as a shell script; changes nothing\n\nThe script is simpler than `eke down`: it overwrites later changes of others, does not check free memory, does not stop the agent, and leaves the files of `eke link` alone."
    )]
    Down {
        /// Print a shell script that undoes kernel settings and swap, instead of undoing
        #[arg(long)]
        print: bool,
    },
    /// Apply the plan at every boot
    #[command(after_help = "Example:\n  sudo eke enable && sudo eke up")]
    Enable,
    /// Do not apply the plan at boot; what is applied stays until `down`
    #[command(after_help = "Example:\n  sudo eke disable && sudo eke down")]
    Disable,
    /// Print what is applied, what it gains, and what was predicted
    #[command(after_help = "Example:\n  eke status\n  eke status --json | jq .model.saved")]
    Status,
    /// Show the status live, on the whole screen
    #[command(
        after_help = "Example:\n  eke top                  q quits, ? explains the words; changes nothing; needs 60 columns\n  eke top --every 5s       over a slow line"
    )]
    Top(Top),
    /// Show the status live in a browser, with plots and the last day
    #[command(
        after_help = "Example:\n  eke dash                          http://127.0.0.1:7117\n  eke dash --listen 0.0.0.0:7117    for other machines, with a token\n\nIt needs no root and changes nothing. Ctrl-C ends it."
    )]
    Dash(Dash),
    /// Print the status as OpenMetrics text, for Prometheus
    #[command(
        after_help = "Example:\n  eke metrics                              once, on standard output\n  eke metrics --listen 127.0.0.1:7118      at /metrics, until Ctrl-C\n  eke metrics --format prometheus | promtool check metrics\n  eke metrics --format prometheus --output /var/lib/prometheus/node-exporter/eke.prom\n\ndocs/metrics.md lists the metrics, docs/alerts.example.yml has alerts to begin with."
    )]
    Metrics(Metrics),
    /// Show important events of the agent as notifications on this desktop
    #[command(
        after_help = "Example:\n  eke notify               until Ctrl-C or the end of the session; needs no root\n\nDesktops start it at login (/etc/xdg/autostart/eke-notify.desktop). It shows that a remedy stopped or a change could not be made: at most three messages in ten minutes, none twice a day."
    )]
    Notify,
    /// Print what this kernel offers and lacks, each line with its reason
    #[command(after_help = "Example:\n  eke doctor")]
    Doctor {
        /// Print the table of every setting that eke can change (docs/knobs.md)
        #[arg(long)]
        knobs: bool,
    },
    /// Write a file about this machine for the developers, with nothing private in it
    #[command(
        after_help = "Example:\n  sudo eke report-bug                  writes eke-report-DATE.txt; root adds the journal\n  sudo eke report-bug --output bug.txt\n\nOnly you can read the file (0600). It has no names, paths or addresses of yours and no contents of memory. Nothing is sent."
    )]
    ReportBug {
        /// Write this file, which must not exist
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// List memory by program, and what closing each program returns
    #[command(
        after_help = "Example:\n  sudo eke advise          all programs; without root only yours\n  eke advise --most 5"
    )]
    Advise {
        /// The number of programs
        #[arg(long, default_value_t = 15, value_name = "N")]
        most: usize,
    },
    /// Run a command in a box of little memory
    #[command(
        after_help = "Example:\n  sudo eke box --memory 124M -- evince thesis.pdf\n\nThe box pays for its share of the compressed pool.\nExit status: that of the command; 137 if the kernel killed it for lack of memory."
    )]
    Box {
        /// The memory of the box: programs, their file pages and their share of the compressed pool
        #[arg(long, value_name = "SIZE")]
        memory: Bytes,
        /// The command and its arguments
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Show before and after in a minute, in a box on this machine
    #[command(after_help = "Example:\n  sudo eke demo")]
    Demo,
    /// Record the memory behaviour of a command, a process or the machine
    #[command(
        args_conflicts_with_subcommands = true,
        subcommand_negates_reqs = true,
        disable_help_subcommand = true,
        override_usage = "eke record [OPTIONS] -- COMMAND...\n       eke record [OPTIONS] --pid PID\n       eke record [OPTIONS] --system\n       eke record mark NAME",
        after_help = "Example:\n  eke record -- evince thesis.pdf\n  eke record mark \"open B.pdf\"     starts a named step, from another terminal or from the command\n  eke report evince.sqlite          the recording as a page\n\nThe recording is one SQLite file. It ends with the command or with Ctrl-C.\nExit status: that of the command; 127 if there is no such command."
    )]
    Record(Record),
    /// Write a recording as a page with plots, as SVG or as CSV
    #[command(
        after_help = "Example:\n  eke report evince.sqlite                   writes evince.html\n  eke report evince.sqlite --svg plots --csv evince.csv\n  eke report evince.sqlite --json | jq .steps"
    )]
    Report(Report),
    /// Compressed swap beyond the plan
    #[command(
        subcommand,
        after_help = "Example:\n  eke swap boot-config     prints what zswap from boot on needs; changes nothing"
    )]
    Swap(Swap),
    /// Serve a directory on a slow disk from compressed memory
    #[command(
        subcommand,
        after_help = "Example:\n  sudo eke cache mount /srv/www     until `umount`; `sudo eke cache enable /srv/www` also at boot\n  eke cache status"
    )]
    Cache(Cache),
    /// Show what programs read at launch, and what eke read ahead
    #[command(
        after_help = "Example:\n  sudo eke prefetch list        the learned programs\n  sudo eke prefetch explain     the latest decisions"
    )]
    Prefetch(Prefetch),
    /// Find the fastest secure ssh cipher, measured on both ends
    #[command(
        after_help = "Example:\n  eke link web1                     measures, and prints what it would write\n  sudo eke link web1 --write        also writes a Host block into /etc/ssh/ssh_config.d\n  sudo eke link pc01 pc02 --ltsp    on an LTSP server: the options of its clients\n  sudo eke link --undo              restores the files\n\nIt takes about 20 s and 200 MB at most for each host, and one connection for each cipher. ssh asks for a password for each; a key avoids that. Under sudo, ssh runs as the user who called sudo.\nPolicies: modern (AES-GCM, ChaCha20-Poly1305 with strict key exchange on both ends, AES-CTR with encrypt-then-MAC of 128 bits or more), fips (AES with HMAC-SHA-2). RC4, CBC, 3DES and none are never used."
    )]
    Link(link::Link),
    /// Compressed swap on all clients of an LTSP server, by one line in ltsp.conf
    #[command(
        subcommand,
        after_help = "Example:\n  eke ltsp plan                prints what `install` would write\n  sudo eke ltsp install        then EKE=auto in ltsp.conf, and `sudo ltsp initrd`\n  eke ltsp status"
    )]
    Ltsp(ltsp::Ltsp),
    /// Measure disk latency by class, and what a setting changes
    #[command(
        subcommand,
        after_help = "Example:\n  sudo eke io watch        latency of each disk, every 5 s\n  sudo eke io compare scheduler none bfq --device sda -- fio job.fio"
    )]
    Io(Io),
    /// Run an experiment and print it as a table; needs the package eke-bench
    #[command(
        disable_help_flag = true,
        after_help = "Example:\n  eke bench --help               the experiments\n  sudo eke bench paging --quick\n\nIt executes `eke-bench` with the same words."
    )]
    Bench {
        /// The experiment and its options
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "EXPERIMENT")]
        words: Vec<OsString>,
    },
    /// Print completions for a shell
    #[command(
        after_help = "Example:\n  eke completions bash | sudo tee /usr/share/bash-completion/completions/eke"
    )]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the man page of eke or of one verb
    #[command(
        after_help = "Example:\n  eke man cache mount | man -l -\n  eke man --directory /usr/local/share/man/man1     all pages: eke.1, eke-up.1, ..."
    )]
    Man {
        /// The verb; without it the page of eke
        #[arg(value_name = "VERB")]
        verb: Vec<String>,
        /// Write all pages into this directory
        #[arg(long, value_name = "DIR", conflicts_with = "verb")]
        directory: Option<PathBuf>,
    },
    /// Print the JSON schemas of everything that --json prints
    #[command(after_help = "Example:\n  eke schema status")]
    Schema {
        /// The schema's name; without it all of them: plan, up, status, doctor, report-bug, advise, box, demo, down, cache-mount, cache-status, cache-umount, cache-warm, prefetch-list, prefetch-show, prefetch-forget, prefetch-explain, prefetch-boot, prefetch-missing, prefetch-trace, prefetch-export, prefetch-import, link, link-undo, ltsp-plan, ltsp-done, ltsp-status, io-watch, io-compare, record, report
        name: Option<String>,
    },
    /// A process with pages of its own (for the demo)
    #[command(hide = true)]
    Stressor {
        /// What it does, as JSON
        spec: String,
    },
    /// Processes that `eke` and the laboratory start themselves
    #[command(subcommand, hide = true)]
    Lab(Lab),
}

impl Verb {
    /// Whether it shows what the machine does now, or would do by the settings.
    pub const fn only_reads(&self) -> bool {
        matches!(self, Self::Plan(_) | Self::Dash(_) | Self::Metrics(_) | Self::Notify)
            || matches!(self, Self::Doctor { .. } | Self::Advise { .. })
    }

    /// Whether it undoes, or only prints what needs no settings.
    pub const fn needs_no_settings(&self) -> bool {
        match self {
            Self::Down { .. } | Self::Disable | Self::ReportBug { .. } | Self::Status | Self::Top(_) => true,
            Self::Completions { .. } | Self::Man { .. } | Self::Schema { .. } => true,
            Self::Link(link) => link.undo,
            Self::Swap(Swap::BootConfig { undo, .. }) => *undo,
            Self::Cache(verb) => {
                matches!(verb, Cache::Umount { .. } | Cache::Disable { .. } | Cache::Status { .. })
            }
            Self::Ltsp(verb) => matches!(verb, ltsp::Ltsp::Uninstall | ltsp::Ltsp::Status(_)),
            Self::Lab(verb) => matches!(verb, Lab::LetGo),
            _ => false,
        }
    }
}

/// `eke lab ...`.
#[derive(Debug, Subcommand)]
pub enum Lab {
    /// The far end of `eke link` without ssh: prints a token and sends zeros to clients that know it, until a line arrives on standard input
    LinkEnd,
    /// Trains a dictionary for zram anew, as a child of the agent
    Retrain {
        /// The agent's process
        #[arg(long, value_name = "PID")]
        end_with: String,
    },
    /// Removes zram devices that keep a file of a file system open, if the machine shuts down
    LetGo,
    /// All others are executed by `eke-bench`
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

/// `eke record`.
#[derive(Debug, ClapArgs)]
#[command(group(clap::ArgGroup::new("subject").required(true).multiple(false).args(["command", "pid", "system"])))]
pub struct Record {
    /// `mark`
    #[command(subcommand)]
    pub verb: Option<RecordVerb>,
    /// Time between two samples (10ms to 1h) [default: 100ms; 1s with --pid or --system]
    #[arg(long, value_name = "TIME", value_parser = eke_model::span::every)]
    pub every: Option<Duration>,
    /// The file; by default the command's name with .sqlite, in this directory
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
    /// Record a running process and its children, until it ends
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// Record the machine alone, until Ctrl-C
    #[arg(long)]
    pub system: bool,
    /// End after this time (with --pid or --system)
    #[arg(long = "for", value_name = "TIME", value_parser = eke_model::span::length, conflicts_with = "command")]
    pub at_most: Option<Duration>,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `eke record ...`.
#[derive(Debug, Subcommand)]
pub enum RecordVerb {
    /// Start a named step in the running recording
    #[command(
        after_help = "Example:\n  eke record mark \"open B.pdf\"\n\nA recorded command marks its own recording (EKE_RECORDING). Other callers mark the only running recording of their user."
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
    /// Write each plot to a file in this directory
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// Write the samples to this file
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
}

/// Settings that override the configuration for this call.
#[derive(Debug, Clone, Default, ClapArgs)]
pub struct Overrides {
    /// Declare this size of the zram device instead of the computed one
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Bytes>,
    /// The largest share of RAM for compressed pages, in percent (10 to 90)
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
    /// zswap in front of a durable swap disk, otherwise zram
    Auto,
    /// A compressed block device in RAM
    Zram,
    /// A compressed cache in front of a swap disk
    Zswap,
}

/// `up` and `run`.
#[derive(Debug, Clone, Default, ClapArgs)]
pub struct Up {
    /// What overrides the configuration
    #[command(flatten)]
    pub overrides: Overrides,
    /// Throttle writers when reads wait too long; overrides the configuration
    #[arg(long)]
    pub govern_io: bool,
    /// At boot: use the last measurement; there are few pages to sample yet
    #[arg(long, hide = true)]
    pub boot: bool,
    /// Start the agent, or leave that to the init system
    #[arg(long, value_enum, default_value = "spawn", hide = true)]
    pub agent: AgentStart,
}

/// What starts the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum AgentStart {
    /// `up` does
    #[default]
    Spawn,
    /// The init system does
    None,
}

/// `eke swap ...`.
#[derive(Debug, Subcommand)]
pub enum Swap {
    /// Set up the planned zswap from boot on: kernel command line and initramfs modules
    #[command(
        after_help = "Example:\n  eke swap boot-config              prints the changes\n  sudo eke swap boot-config --write makes them (boot loader: grub, systemd-boot, extlinux)\n  sudo eke swap boot-config --undo  restores the files"
    )]
    BootConfig {
        /// Make the changes
        #[arg(long, conflicts_with = "undo")]
        write: bool,
        /// Restore the files
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

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};

    use super::*;

    /// `eke` and all verbs that the help lists.
    fn all(command: Command) -> Vec<Command> {
        let verbs: Vec<Command> =
            command.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned().collect();
        std::iter::once(command).chain(verbs.into_iter().flat_map(all)).collect()
    }

    /// The help is wrapped where it is printed: a line end within a paragraph would be a second one.
    #[test]
    fn every_verb_has_an_example_and_its_paragraphs_are_whole() {
        for verb in all(Args::command()) {
            let text = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(
                verb.get_name() == "eke" || text.starts_with("Example:\n"),
                "{} has no example",
                verb.get_name()
            );
            for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with("  ")) {
                assert!(line.ends_with(['.', ':']), "{}: {line}", verb.get_name());
            }
        }
    }
}

//! `eke cache ...`.

use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand, ValueEnum};
use eke_cache_mounts::settings;
use eke_cache_mounts::settings::{MOST_PERCENT, Memory};
use eke_model::units::Bytes;

use super::shared::SharedTierArgs;

/// The smallest cache that justifies a process.
const LEAST: Bytes = Bytes::mib(8);

/// The smallest spill: some hundred blocks.
const LEAST_SPILL: Bytes = Bytes::mib(16);

/// `eke cache ...`.
#[derive(Debug, Subcommand)]
pub enum Cache {
    /// Serve a directory from compressed memory
    #[command(
        after_help = "Example:\n  sudo eke cache mount /srv/www                        over itself: programs notice nothing\n  eke cache mount ~/photos ~/fast --memory 2G          at a second place, without root\n  sudo eke cache umount /srv/www                       the directory as it was\n\nA write is acknowledged after the backing directory has it, so nothing can be lost. The mount shows changes that others make in the backing directory when a file is opened; as root, also while it is open."
    )]
    Mount(Mount),
    /// Unmount; the backing directory shows again
    #[command(
        after_help = "Example:\n  sudo eke cache umount /srv/www\n  sudo eke cache umount /srv/www --lazy     at once; open files work until they are closed"
    )]
    Umount {
        /// The mount point
        place: PathBuf,
        /// Unmount although files are open
        #[arg(long)]
        lazy: bool,
    },
    /// Mount a cache now and at every boot
    #[command(
        after_help = "Example:\n  sudo eke cache enable /srv/www\n  sudo eke cache enable /mnt/disk/photos /srv/photos --memory 2G\n  sudo eke cache disable /srv/www\n\nWith systemd it writes a unit, which starts after the file systems of both paths and stops before they are unmounted. Elsewhere it adds a line to /etc/fstab, which needs the package fuse3."
    )]
    Enable(Served),
    /// Unmount a cache, and mount it at boot no longer
    #[command(
        after_help = "Example:\n  sudo eke cache disable /srv/www\n  sudo eke cache disable --all     all that `eke cache enable` has mounted at boot"
    )]
    Disable {
        /// The mount point
        #[arg(required_unless_present = "all")]
        place: Option<PathBuf>,
        /// All of them
        #[arg(long, conflicts_with = "place")]
        all: bool,
    },
    /// Read files into the cache's memory
    #[command(
        after_help = "Example:\n  sudo eke cache warm /srv/www/img /srv/www/index.html\n  sudo eke cache warm /srv/www --json\n\nThe worker of the mount reads them, at idle I/O priority, and they stay longer than files that were read once. Ctrl-C ends it; what was read stays. It ends by itself when more would not fit. Only root and the user who mounted may.\n\nExit status: 5 if some of it does not fit, does not compress, or could not be read."
    )]
    Warm {
        /// Files or directories in a mounted cache
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Print content, gain and cost of each mount, with reasons
    #[command(
        after_help = "Example:\n  eke cache status\n  eke cache status /srv/www --json | jq '.caches[].details.worker.store.hit_rate'\n\nExit status: 1 if the supervisor of one of your mounts was killed, or nothing is mounted at PLACE."
    )]
    Status {
        /// Only this mount
        place: Option<PathBuf>,
    },
}

/// `eke cache mount`.
#[derive(Debug, Args)]
pub struct Mount {
    /// What is served, and how
    #[command(flatten)]
    pub served: Served,
    /// Stay in the foreground; Ctrl-C unmounts
    #[arg(long)]
    pub foreground: bool,
}

/// What is served, and how.
#[derive(Debug, Clone, Args)]
pub struct Served {
    /// The directory
    pub dir: PathBuf,
    /// The mount point; by default the directory itself
    pub place: Option<PathBuf>,
    /// The most memory: a size, or 1% to 85% of RAM (or of the control group's limit, if that is less). The cache takes less while others need it
    #[arg(long, value_name = "SIZE|SHARE%", default_value = "85%", value_parser = memory)]
    pub memory: Memory,
    /// Compress blocks after the answer, or before it
    #[arg(long, value_enum, default_value = "async")]
    pub compress: Compress,
    /// Let other users see the mount, with the permissions of the files (default for root; without root they create nothing there)
    #[arg(long, overrides_with = "no_allow_other")]
    pub allow_other: bool,
    /// Hide the mount from other users (default for all but root)
    #[arg(long)]
    pub no_allow_other: bool,
    /// Read files by passthrough where the cache would cost more than it gives, never, or always
    #[arg(long, value_enum, default_value = "auto")]
    pub passthrough: PassthroughMode,
    /// Do not have the kernel report changes in the backing directory (fanotify, root only); the mount then shows them when a file is opened
    #[arg(long = "no-watch", action = ArgAction::SetFalse)]
    pub watch: bool,
    /// Where the kernel does not report changes of names and attributes (NFS, mounts without root), the mount may show old ones for so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=86_400))]
    pub names: u32,
    /// Do not keep the list of what was hot (names only, for you alone), and do not read it again after the next mount
    #[arg(long = "no-remember", action = ArgAction::SetFalse)]
    pub remember: bool,
    /// Stay mounted also while the cache gains nothing. Without this, a mount of root's over the directory itself stands aside meanwhile
    #[arg(long)]
    pub keep_mounted: bool,
    /// Keep blocks that leave memory in this directory, compressed. It must be yours alone, on a faster disk than the directory's own
    #[arg(long, value_name = "DIR")]
    pub spill: Option<PathBuf>,
    /// The most bytes in the directory of --spill (default: a quarter of what is free there)
    #[arg(long, value_name = "SIZE", requires = "spill", value_parser = spill_size)]
    pub spill_size: Option<Bytes>,
    /// The most bytes written there in a day (default: a tenth of that disk, which an SSD withstands for years)
    #[arg(long, value_name = "SIZE", requires = "spill", value_parser = spill_size)]
    pub spill_day: Option<Bytes>,
    /// The tier that a farm shares
    #[command(flatten)]
    pub shared: SharedTierArgs,
    /// Mount although programs have files open for writing (they bypass the mount, and locks do not reach them), or an NFS server exports
    /// the place (its clients get ESTALE now and then)
    #[arg(long)]
    pub force: bool,
}

impl Served {
    /// May other users see it?
    pub fn others(&self, is_root: bool) -> bool {
        self.allow_other || (is_root && !self.no_allow_other)
    }
}

/// When blocks are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Compress {
    /// After the answer; what does not fit into the queues is not kept
    Async,
    /// Before the answer
    Sync,
}

impl From<Compress> for settings::Compress {
    fn from(c: Compress) -> Self {
        match c {
            Compress::Async => Self::Async,
            Compress::Sync => Self::Sync,
        }
    }
}

/// Which files are read by passthrough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PassthroughMode {
    /// By running estimates of costs
    Auto,
    /// None
    Never,
    /// All
    Always,
}

impl From<PassthroughMode> for settings::PassthroughMode {
    fn from(s: PassthroughMode) -> Self {
        match s {
            PassthroughMode::Auto => Self::Auto,
            PassthroughMode::Never => Self::Never,
            PassthroughMode::Always => Self::Always,
        }
    }
}

/// `25%`, or a size.
fn memory(text: &str) -> Result<Memory, String> {
    if let Some(share) = text.trim().strip_suffix('%') {
        let share = share.trim().parse().ok().filter(|s| (1..=MOST_PERCENT).contains(s));
        return share.map(Memory::Percent).ok_or_else(|| {
            format!("\"{text}\" is not a share from 1% to {MOST_PERCENT}%: programs need the rest")
        });
    }
    let bytes: Bytes = text.parse().map_err(|e| format!("{e}, or a share such as 25%"))?;
    if bytes < LEAST {
        return Err(format!(
            "{bytes} is too small for a cache: give at least {LEAST}, or a share such as 25%"
        ));
    }
    Ok(Memory::Bytes(bytes))
}

/// A size that justifies a spill.
fn spill_size(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse().map_err(|e| format!("{e}"))?;
    if bytes < LEAST_SPILL {
        return Err(format!("{bytes} is too small for evicted blocks: give at least {LEAST_SPILL}"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use eke_cache_mounts::settings::DEFAULT;

    use super::*;

    #[test]
    fn a_spill_has_a_least_size() {
        assert_eq!(spill_size("16M"), Ok(Bytes::mib(16)));
        for wrong in ["15M", "0", "", "lots", "10%"] {
            assert!(spill_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn memory_is_a_size_or_a_share() {
        assert_eq!(memory("1%"), Ok(Memory::Percent(1)));
        // The help's and clap's 85 is text.
        assert_eq!(memory("85%"), Ok(DEFAULT));
        assert_eq!(memory("400M"), Ok(Memory::Bytes(Bytes::mib(400))));
        for wrong in ["0", "0%", "86%", "90%", "-1%", "%", "", "lots", "12.5%", "7M", "300%"] {
            assert!(memory(wrong).is_err(), "{wrong}");
        }
    }
}

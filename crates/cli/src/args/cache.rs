//! `eke cache ...`.

use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand, ValueEnum};
use eke_cache_mounts::settings;
use eke_cache_mounts::settings::Memory;
use eke_model::units::Bytes;

/// The least that is worth a process.
const LEAST: Bytes = Bytes::mib(8);

/// `eke cache ...`.
#[derive(Debug, Subcommand)]
pub enum Cache {
    /// Serve a directory from memory that holds it compressed
    #[command(
        after_help = "Example:\n  sudo eke cache mount /srv/www                        over itself: programs notice nothing\n  eke cache mount ~/photos ~/fast --memory 2G          at a second place, without root\n  eke cache umount /srv/www                            puts everything back\n\nA write is acknowledged after the directory below has it: nothing can be lost that it would not lose.\nChanges made below by others are seen when a file is opened; as root also while it is open."
    )]
    Mount(Mount),
    /// End it; the directory below shows again
    #[command(
        after_help = "Example:\n  eke cache umount /srv/www\n  eke cache umount /srv/www --lazy     at once; what is open there goes on until it is closed"
    )]
    Umount {
        /// Where it is mounted
        place: PathBuf,
        /// Also while files are open there
        #[arg(long)]
        lazy: bool,
    },
    /// What each mount holds, gains and costs, and why
    #[command(
        after_help = "Example:\n  eke cache status\n  eke cache status /srv/www --json | jq '.caches[].details.worker.store.hit_rate'\n\nExit status: 1 if one of yours is dead (its supervisor was killed), or nothing is mounted at PLACE."
    )]
    Status {
        /// Only this one
        place: Option<PathBuf>,
    },
}

/// `eke cache mount`.
#[derive(Debug, Args)]
pub struct Mount {
    /// The directory
    pub dir: PathBuf,
    /// Where it is to be served; without it over itself
    pub place: Option<PathBuf>,
    /// The most memory that it may take: a size, or a share of RAM (of the group's limit, if that is less) from 1% to 85%
    #[arg(long, value_name = "SIZE|SHARE%", default_value = "25%", value_parser = memory)]
    pub memory: Memory,
    /// Pack blocks after the answer, or before it
    #[arg(long, value_enum, default_value = "async")]
    pub compress: Compress,
    /// Other users may see it, with the permissions of the files; what root gets without this option
    #[arg(long, overrides_with = "no_allow_other")]
    pub allow_other: bool,
    /// Only you may see it; what others than root get without this option
    #[arg(long)]
    pub no_allow_other: bool,
    /// Read files straight from below where the cache would cost more than it gives, never, or always
    #[arg(long, value_enum, default_value = "auto")]
    pub straight: Straight,
    /// Do not let the kernel tell of changes made below (fanotify, root only); they are seen when a file is opened
    #[arg(long = "no-watch", action = ArgAction::SetFalse)]
    pub watch: bool,
    /// Also over a directory where programs have files open for writing: they go on below, and do not meet who opens the same file
    /// through the cache
    #[arg(long)]
    pub force: bool,
    /// Stay until Ctrl-C, which ends it
    #[arg(long)]
    pub foreground: bool,
}

impl Mount {
    /// May other users see it?
    pub fn others(&self, is_root: bool) -> bool {
        self.allow_other || (is_root && !self.no_allow_other)
    }
}

/// When blocks are packed.
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

/// Which files are read straight from below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Straight {
    /// By running estimates of costs
    Auto,
    /// None
    Never,
    /// All
    Always,
}

impl From<Straight> for settings::Straight {
    fn from(s: Straight) -> Self {
        match s {
            Straight::Auto => Self::Auto,
            Straight::Never => Self::Never,
            Straight::Always => Self::Always,
        }
    }
}

/// `25%`, or a size.
fn memory(text: &str) -> Result<Memory, String> {
    if let Some(share) = text.trim().strip_suffix('%') {
        let share = share.trim().parse().ok().filter(|s| (1..=85).contains(s));
        return share
            .map(Memory::Percent)
            .ok_or_else(|| format!("\"{text}\" is not a share from 1% to 85%: the rest is for programs"));
    }
    let bytes: Bytes = text.parse().map_err(|e| format!("{e}, or a share such as 25%"))?;
    if bytes < LEAST {
        return Err(format!("{bytes} holds next to nothing: give at least {LEAST}, or a share such as 25%"));
    }
    Ok(Memory::Bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_a_size_or_a_share() {
        assert_eq!(memory("1%"), Ok(Memory::Percent(1)));
        assert_eq!(memory("85%"), Ok(Memory::Percent(85)));
        assert_eq!(memory("400M"), Ok(Memory::Bytes(Bytes::mib(400))));
        for wrong in ["0", "0%", "86%", "90%", "-1%", "%", "", "lots", "12.5%", "7M", "300%"] {
            assert!(memory(wrong).is_err(), "{wrong}");
        }
    }
}

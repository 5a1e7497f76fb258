//! Compressed page caches that are mounted at every boot: a systemd unit for each, or else a line in `/etc/fstab`.
//!
//! # Layout
//! - [`unit`]: the unit as text, and its name
//! - [`fstab`]: the line as text
//!
//! A unit is of eke's making, so each has its own owner in the journal of files and goes on its own. The lines in `/etc/fstab` have one owner
//! together, since a file belongs to one at most; removing one of them is another change.

pub mod fstab;
pub mod unit;

use super::act::{self, Undone, Written};
use super::command::{self, Command};
use super::enable::{self, Init};
use super::shell::with_line;
use crate::files::{self, Change, journal};
use eke_linux::error::{Error, Result};
use eke_linux::root::Root;

/// Owners of units in the journal of files: this and the mount point.
const OWNER: &str = "cache at ";
/// The owner of the lines in `/etc/fstab`.
const FSTAB_OWNER: &str = "caches in fstab";
const FSTAB: &str = "etc/fstab";
/// Programs that run mounts of the types `fuse.*` (package fuse3).
const HELPERS: [&str; 2] = ["mount.fuse3", "mount.fuse"];

/// A cache to mount at every boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheAtBoot {
    /// The backing directory, absolute.
    pub dir: String,
    /// The mount point, absolute.
    pub place: String,
    /// Options of `eke cache mount` without dashes, as `memory=2147483648`, `no-watch`.
    pub options: Vec<String>,
    /// Further directories, absolute, that it needs.
    pub needs: Vec<String>,
    /// The backing directory is on a network file system.
    pub is_remote: bool,
}

/// What mounts a cache at boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountedBy {
    /// This systemd unit.
    Unit(String),
    /// A line in `/etc/fstab`.
    Fstab,
}

/// The changes that have a cache mounted at every boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachePlan {
    /// By what.
    pub by: MountedBy,
    /// How that was chosen.
    pub evidence: String,
    owner: String,
    place: String,
    changes: Vec<Change>,
    /// Another line at the end of `/etc/fstab`: after the line of the file system below.
    line: Option<String>,
    commands: Vec<Command>,
}

/// A cache that `eke cache enable` has mounted at every boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnabledCache {
    /// The mount point.
    pub place: String,
    /// By what.
    pub by: MountedBy,
    /// What was written is still there.
    pub stands: bool,
}

/// Plans the changes.
///
/// # Errors
/// A path that neither form can have; programs that somebody else could replace; an fstab without the helper of FUSE.
pub fn changes(root: &Root, bin_dir: &str, cache: &CacheAtBoot) -> Result<CachePlan> {
    only_one(root, &cache.place)?;
    let (init, evidence) = enable::detect(root);
    let place = cache.place.clone();
    if init == Init::Systemd {
        enable::usable(root, bin_dir)?;
        let (name, text) = unit::of(bin_dir, cache)?;
        let wanted = format!("etc/systemd/system/multi-user.target.wants/{name}");
        let path = format!("etc/systemd/system/{name}");
        let changes = vec![Change::text(path.clone(), text), Change::symlink(wanted, format!("/{path}"))];
        let commands = enable::systemd_reload(root).into_iter().collect();
        let owner = format!("{OWNER}{place}");
        let by = MountedBy::Unit(name);
        return Ok(CachePlan { by, evidence, owner, place, changes, line: None, commands });
    }
    if !HELPERS.iter().any(|helper| command::find(root, helper).is_some()) {
        return Err(Error::Refused(format!(
            "mount.fuse3 is missing, which mounts a cache by /etc/fstab ({evidence}); it is in the package fuse3"
        )));
    }
    Ok(CachePlan {
        by: MountedBy::Fstab,
        evidence,
        owner: FSTAB_OWNER.into(),
        place,
        changes: Vec::new(),
        line: Some(fstab::line(cache)?),
        commands: Vec::new(),
    })
}

fn only_one(root: &Root, place: &str) -> Result<()> {
    match enabled(root)?.into_iter().find(|known| known.place == place) {
        None => Ok(()),
        Some(known) => Err(Error::Refused(format!(
            "a cache at {place} is mounted at every boot already, by {}; `eke cache disable {place}` ends that",
            known.by.name()
        ))),
    }
}

impl MountedBy {
    /// Its name in a sentence.
    pub fn name(&self) -> String {
        match self {
            Self::Unit(name) => format!("systemd ({name})"),
            Self::Fstab => "/etc/fstab".to_owned(),
        }
    }
}

/// Makes the plan's changes and runs its commands.
///
/// # Errors
/// A failing command: its name, status and output. The files are then restored. Another process enabled it meanwhile.
pub fn write(root: &Root, plan: &CachePlan) -> Result<Written> {
    let _lock = files::lock(root)?;
    only_one(root, &plan.place)?;
    let mut changes = plan.changes.clone();
    if let Some(line) = &plan.line {
        let text = with_line(&files::read(root, FSTAB)?.unwrap_or_default(), line);
        changes.push(Change::text(FSTAB, text));
    }
    let reason = format!("a compressed page cache at {} at every boot", plan.place);
    let run: act::RunCommand<'_> = &mut |command| command::run(root, command);
    act::write_locked(root, &plan.owner, &changes, &plan.commands, &reason, run)
}

/// Starts a unit now, on the running machine.
///
/// # Errors
/// The command's status and output.
pub fn start(root: &Root, unit: &str) -> Result<()> {
    let argv = ["systemctl", "start", unit].map(str::to_owned).to_vec();
    command::run(root, &Command { argv, why: "mounts it now".into() }).map(drop)
}

/// Undoes the changes for the cache at this place. `None`: it is not mounted at boot by eke.
///
/// # Errors
/// A command that fails, or a file that cannot be changed.
pub fn undo(root: &Root, place: &str) -> Result<Option<Undone>> {
    let Some(known) = enabled(root)?.into_iter().find(|known| known.place == place) else {
        return Ok(None);
    };
    let run: act::RunCommand<'_> = &mut |command| command::run(root, command);
    match known.by {
        MountedBy::Unit(_) => {
            let after = |root: &Root, _: &[String]| enable::systemd_reload(root).into_iter().collect();
            act::undo_files(root, &format!("{OWNER}{place}"), &[], &after, run).map(Some)
        }
        MountedBy::Fstab => undo_line(root, place).map(Some),
    }
}

/// Restores `/etc/fstab` if that is the only line and nobody changed the file since; otherwise removes the line.
fn undo_line(root: &Root, place: &str) -> Result<Undone> {
    let _lock = files::lock_to_undo(root)?;
    let listed = files::listed(root, FSTAB_OWNER)?;
    let stands = listed.iter().all(|file| file.stands);
    let text = files::read(root, FSTAB)?.unwrap_or_default();
    if stands && fstab::places(&text) == [place] {
        let files = files::revert(root, FSTAB_OWNER)?;
        return Ok(Undone { files, ..Undone::default() });
    }
    let rest = fstab::without(&text, place);
    let is_last = fstab::places(&rest).is_empty();
    files::apply(root, FSTAB_OWNER, &[Change::text(FSTAB, rest)], "a cache is mounted at boot no longer")?;
    if is_last {
        // Nothing of it is left to undo.
        let others: Vec<_> =
            journal::load(root)?.into_iter().filter(|record| record.owner != FSTAB_OWNER).collect();
        journal::keep(root, &others)?;
    }
    let files = vec![files::Reverted { path: FSTAB.into(), outcome: files::Outcome::Restored }];
    Ok(Undone { files, ..Undone::default() })
}

/// The caches that eke has mounted at every boot.
///
/// # Errors
/// The journal of files cannot be read.
pub fn enabled(root: &Root) -> Result<Vec<EnabledCache>> {
    let mut owners: Vec<String> = journal::load(root)?.into_iter().map(|record| record.owner).collect();
    owners.sort_unstable();
    owners.dedup();
    let mut found = Vec::new();
    for owner in owners {
        if let Some(place) = owner.strip_prefix(OWNER) {
            let files = files::listed(root, &owner)?;
            let stands = !files.is_empty() && files.iter().all(|file| file.stands);
            let by = MountedBy::Unit(unit::name(place)?);
            found.push(EnabledCache { place: place.to_owned(), by, stands });
        } else if owner == FSTAB_OWNER {
            let places = fstab::places(&files::read(root, FSTAB)?.unwrap_or_default());
            found.extend(places.into_iter().map(|place| EnabledCache {
                place,
                by: MountedBy::Fstab,
                stands: true,
            }));
        }
    }
    Ok(found)
}

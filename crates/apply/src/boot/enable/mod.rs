//! Starts eke at every boot: a unit or a script, and the link that makes the init system run it.
//!
//! eke makes the links of `systemctl enable` and `rc-update add` itself: then they are in the journal and are undone
//! exactly, and an image can be enabled from outside. System V init may order its links itself (insserv), so there
//! `update-rc.d` makes them if it is installed. A unit that a package ships is only linked. `enable` and `disable` start
//! and stop nothing: `eke up` and `eke down` do that.

pub mod rc_local;
mod systemd;
mod trusted;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::act::{self, Undone, Written};
use super::command::{self, Command};
use crate::files::{self, Change, Listed, Outcome, Reverted, links};
use eke_linux::error::{Error, Result};
use eke_linux::root::Root;
pub use systemd::has_unit;

/// The owner of these changes in the journal of files.
pub const OWNER: &str = "enable";

/// The systemd unit; `@BIN@` is replaced later.
pub const UNIT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../units/eke.service"));
const OPENRC: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../units/eke.openrc"));
const SYSV: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../units/eke.sysv"));
const RC_LOCAL_BLOCK: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../units/eke.rc-local"));

/// Programs that root runs at boot: the first two, those that the agent starts, and what mounts a cache.
const PROGRAMS: [&str; 5] = ["eke", "eke-agent", "eke-prefetch", "eke-io", "eke-cache"];
const SCRIPT: &str = "etc/init.d/eke";
const RC_LOCAL: &str = "etc/rc.local";
/// This directory exists if systemd runs: `sd_booted(3)`.
const SYSTEMD_RUNS: &str = "run/systemd/system";

/// The init system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Init {
    /// systemd: a unit.
    Systemd,
    /// OpenRC: a script and a link in the default runlevel.
    OpenRc,
    /// System V init: a script, and links in `/etc/rc2.d` to `rc5.d`, `rc0.d` and `rc6.d`.
    Sysv,
    /// Anything else (busybox): a block in `/etc/rc.local`.
    RcLocal,
}

/// The changes and commands that enable eke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnablePlan {
    /// The init system that will start eke.
    pub init: Init,
    /// How it was detected.
    pub evidence: String,
    /// The files.
    pub changes: Vec<Change>,
    /// The commands to run after the changes.
    pub commands: Vec<Command>,
    /// What the user has to know.
    pub notes: Vec<String>,
}

/// Whether eke starts at every boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The files that `enable` changed; empty if it was not called.
    pub files: Vec<Listed>,
    /// Whether all that `enable` wrote is still in place, or `systemctl enable` made the link.
    pub enabled: bool,
}

/// Detects the init system of the next boot, with the evidence.
pub fn detect(root: &Root) -> (Init, String) {
    let init = links::resolve(root, "sbin/init", true).unwrap_or_default();
    if root.exists(SYSTEMD_RUNS) {
        return (Init::Systemd, format!("found /{SYSTEMD_RUNS}: systemd is running"));
    }
    if init.ends_with("systemd/systemd") {
        return (Init::Systemd, format!("/sbin/init is /{init}"));
    }
    if let Some(program) = command::find(root, "openrc-run") {
        return (Init::OpenRc, format!("found /{program}"));
    }
    if root.exists("etc/rc2.d") && root.exists("etc/init.d") {
        return (Init::Sysv, "found /etc/init.d and /etc/rc2.d".into());
    }
    (Init::RcLocal, "neither systemd nor OpenRC nor System V init was found".into())
}

/// Plans the changes that start `bin_dir/eke` and `bin_dir/eke-agent` at every boot.
///
/// # Errors
/// A directory that a boot must not depend on, or programs that are missing there.
pub fn changes(root: &Root, bin_dir: &str) -> Result<EnablePlan> {
    usable(root, bin_dir)?;
    let (init, evidence) = detect(root);
    let mut plan =
        EnablePlan { init, evidence, changes: Vec::new(), commands: Vec::new(), notes: Vec::new() };
    let filled = |template: &str| template.replace("@BIN@", bin_dir.trim_end_matches('/'));
    match init {
        Init::Systemd => {
            let enabling = systemd::enabling(root, OWNER, bin_dir, filled(UNIT))?;
            (plan.changes, plan.notes) = (enabling.changes, enabling.notes);
            plan.commands.extend(systemd_reload(root));
        }
        Init::OpenRc => {
            plan.changes.push(Change::text_with_mode(SCRIPT, filled(OPENRC), 0o755));
            plan.changes.push(Change::symlink("etc/runlevels/default/eke", format!("/{SCRIPT}")));
        }
        Init::Sysv => plan.sysv(root, filled(SYSV)),
        Init::RcLocal => plan.rc_local(root, &filled(RC_LOCAL_BLOCK))?,
    }
    Ok(plan)
}

impl EnablePlan {
    fn sysv(&mut self, root: &Root, script: String) {
        self.changes.push(Change::text_with_mode(SCRIPT, script, 0o755));
        if command::find(root, "update-rc.d").is_some() {
            self.commands.push(Command::new("update-rc.d eke defaults", "creates the links that start eke"));
            return;
        }
        let starts = (2..=5).map(|n| (format!("etc/rc{n}.d"), "S20eke"));
        let stops = [0, 6].map(|n| (format!("etc/rc{n}.d"), "K20eke"));
        let links = starts.chain(stops).filter(|(dir, _)| root.exists(dir));
        self.changes
            .extend(links.map(|(dir, link)| Change::symlink(format!("{dir}/{link}"), "../init.d/eke")));
    }

    fn rc_local(&mut self, root: &Root, block: &str) -> Result<()> {
        let before = files::read(root, RC_LOCAL)?;
        let text = rc_local::with_block(before.as_deref(), block);
        let mode = fs::metadata(root.path(RC_LOCAL))
            .map_or(0o755, |meta| meta.permissions().mode() & 0o7777 | 0o111);
        self.changes.push(Change::text_with_mode(RC_LOCAL, text, mode));
        let mentions = |file: &&str| root.read(file).is_ok_and(|text| text.contains("rc.local"));
        if !["etc/inittab", "etc/init.d/rcS", "etc/rc", "init"].iter().any(mentions) {
            self.notes.push(
                "check that your init runs /etc/rc.local: no configuration file shows that it does".into(),
            );
        }
        Ok(())
    }
}

pub(super) fn systemd_reload(root: &Root) -> Option<Command> {
    let why = "makes systemd reload its units";
    root.exists(SYSTEMD_RUNS).then(|| Command::new("systemctl daemon-reload", why))
}

pub(super) fn usable(root: &Root, bin_dir: &str) -> Result<()> {
    if root.exists("etc/NIXOS") {
        return Err(Error::Refused(
            "this is NixOS, which makes its units itself: declare this one in configuration.nix (systemd.services)".into(),
        ));
    }
    let refused =
        |why: &str| Err(Error::Refused(format!("eke cannot be started at boot from {bin_dir}: {why}")));
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._+-".contains(c);
    if !bin_dir.starts_with('/') || !bin_dir.chars().all(plain) {
        return refused("the path must be absolute and without blanks or special characters");
    }
    if ["/home/", "/root/", "/tmp/", "/var/tmp/", "/run/"]
        .iter()
        .any(|dir| format!("{bin_dir}/").starts_with(dir))
    {
        return refused(
            "root must not depend on a user's or a temporary directory; `make install` copies the programs to /usr/local/bin",
        );
    }
    let there = |program: &&&str| root.exists(format!("{bin_dir}/{program}"));
    if let Some(program) = ["eke", "eke-agent"].iter().find(|program| !there(program)) {
        return refused(&format!("{program} is missing; `make install` copies it to /usr/local/bin"));
    }
    let objection = |program: &&str| trusted::objection(root, &format!("{bin_dir}/{program}"));
    match PROGRAMS.iter().filter(there).find_map(objection) {
        Some(why) => refused(&format!(
            "{why}, who could become root at the next boot; `sudo make install` copies the programs to /usr/local/bin, `chown root` and `chmod go-w` protect a directory"
        )),
        None => Ok(()),
    }
}

/// Makes the plan's changes and runs its commands.
///
/// # Errors
/// A failing command: its name, status and output. The files are then restored.
pub fn write(root: &Root, plan: &EnablePlan) -> Result<Written> {
    let reason = "eke at every boot";
    act::write_files(root, OWNER, &plan.changes, &plan.commands, reason, &mut |command| {
        command::run(root, command)
    })
}

/// Undoes all changes, for any init system.
///
/// # Errors
/// A command that fails.
pub fn undo(root: &Root) -> Result<Undone> {
    let files = files::listed(root, OWNER)?;
    let has = |part: &str| files.iter().any(|f| f.path.contains(part));
    // update-rc.d made the links that are not in the journal.
    let by_command = has(SCRIPT) && !has("etc/runlevels/") && !has("etc/rc2.d/");
    let before =
        by_command.then(|| Command::new("update-rc.d -f eke remove", "removes the links that start eke"));
    let after = |root: &Root, paths: &[String]| {
        let unit = paths.iter().any(|path| [systemd::UNIT_FILE, systemd::LINK].contains(&path.as_str()));
        systemd_reload(root).filter(|_| unit).into_iter().collect::<Vec<_>>()
    };
    let run: act::RunCommand<'_> = &mut |command| command::run(root, command);
    let mut undone = act::undo_files(root, OWNER, before.as_slice(), &after, run)?;
    if systemd::remove_link(root)? {
        undone.files.push(Reverted { path: systemd::LINK.into(), outcome: Outcome::Removed });
        act::perform_into(&mut undone, systemd_reload(root).as_slice(), run)?;
    }
    Ok(undone)
}

/// Whether eke starts at every boot.
pub fn state(root: &Root) -> Result<State> {
    let files = files::listed(root, OWNER)?;
    let written = !files.is_empty() && files.iter().all(|f| f.stands);
    let enabled = written || (files.is_empty() && systemd::is_linked(root) && has_unit(root));
    Ok(State { files, enabled })
}

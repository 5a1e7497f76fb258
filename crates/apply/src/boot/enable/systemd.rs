//! systemd: the unit that a package ships is only enabled; otherwise eke writes one.

use std::fs;
use std::path::Path;

use super::trusted;
use crate::files::{self, Change, links};
use crate::sys;
use eke_linux::error::{Error, Result};
use eke_linux::root::Root;

/// eke's unit, and the administrator's.
pub(super) const UNIT_FILE: &str = "etc/systemd/system/eke.service";
/// The link that `systemctl enable` makes from `WantedBy=multi-user.target`.
pub(super) const LINK: &str = "etc/systemd/system/multi-user.target.wants/eke.service";
/// Units of packages, the first one wins: systemd.unit(5). `/lib` is a link to `/usr/lib` on most systems.
const SHIPPED: [&str; 3] = [
    "usr/local/lib/systemd/system/eke.service",
    "usr/lib/systemd/system/eke.service",
    "lib/systemd/system/eke.service",
];

/// Whether systemd knows a unit of eke's, from whatever source.
pub fn has_unit(root: &Root) -> bool {
    root.exists(UNIT_FILE) || shipped(root).is_some()
}

/// The unit of a package.
fn shipped(root: &Root) -> Option<&'static str> {
    SHIPPED.into_iter().find(|file| root.path(file).is_file())
}

/// The changes that enable eke, and what the user has to know.
#[derive(Debug, Default)]
pub(super) struct Enabling {
    pub changes: Vec<Change>,
    pub notes: Vec<String>,
}

/// Enables the package's unit, or writes `unit` and enables that.
///
/// # Errors
/// A masked unit, or a package's unit whose programs somebody else can replace.
pub(super) fn enabling(root: &Root, owner: &str, bin_dir: &str, unit: String) -> Result<Enabling> {
    let mut plan = Enabling::default();
    let target = match shipped(root) {
        Some(file) if plan.starts_its_programs(root, file, bin_dir)? => {
            plan.unit_in_use(root, owner, file)?
        }
        _ => {
            plan.changes.push(Change::text(UNIT_FILE, unit));
            UNIT_FILE
        }
    };
    if !links_to(root, target) {
        plan.changes.push(Change::symlink(LINK, format!("/{target}")));
    }
    Ok(plan)
}

impl Enabling {
    /// Whether the package's unit starts programs that exist; notes whose they are.
    fn starts_its_programs(&mut self, root: &Root, file: &str, bin_dir: &str) -> Result<bool> {
        let Some(program) = started(&root.read(file)?) else {
            self.notes.push(format!("/{file} starts no eke-agent, so eke wrote a unit of its own"));
            return Ok(false);
        };
        if !root.exists(&program) {
            self.notes
                .push(format!("/{file} starts {program}, which is missing, so eke wrote a unit of its own"));
            return Ok(false);
        }
        if let Some(why) = trusted::objection(root, &program) {
            return Err(Error::Refused(format!(
                "/{file} cannot be enabled: {why}, who could become root at the next boot"
            )));
        }
        let own = format!("{}/eke-agent", bin_dir.trim_end_matches('/'));
        if !same_file(root, &program, &own) {
            self.notes.push(format!(
                "/{file} is of another installation: it starts {program}, not {own}. Remove one of the two installations"
            ));
        }
        Ok(true)
    }

    /// The unit that systemd uses: the administrator's file replaces the package's. One that `owner` wrote before the
    /// package came is removed.
    fn unit_in_use(&mut self, root: &Root, owner: &str, file: &'static str) -> Result<&'static str> {
        let path = root.path(UNIT_FILE);
        if fs::symlink_metadata(&path).is_err() {
            return Ok(file);
        }
        if fs::read_link(&path).is_ok_and(|target| target == Path::new("/dev/null")) {
            return Err(Error::Refused(format!(
                "{} is masked; `systemctl unmask eke.service` permits it to start, then try again",
                path.display()
            )));
        }
        if files::listed(root, owner)?.iter().any(|f| f.path == UNIT_FILE && f.stands) {
            self.changes.push(Change::removal(UNIT_FILE));
            return Ok(file);
        }
        self.notes.push(format!("/{UNIT_FILE} replaces the package's /{file}"));
        Ok(UNIT_FILE)
    }
}

/// The agent that a unit starts.
fn started(unit: &str) -> Option<String> {
    let commands = unit.lines().filter_map(|line| line.trim().strip_prefix("ExecStart="));
    // Prefixes of a command: systemd.service(5).
    let programs = commands.filter_map(|c| c.trim_start_matches(['@', '-', ':', '+', '!']).split(' ').next());
    programs.map(str::to_owned).find(|program| program.starts_with('/') && program.ends_with("/eke-agent"))
}

fn same_file(root: &Root, a: &str, b: &str) -> bool {
    let resolved = |path: &str| links::resolve(root, path, true).ok();
    resolved(a).is_some_and(|a| Some(a) == resolved(b))
}

/// Whether the link exists already and leads to this unit, by whatever path.
fn links_to(root: &Root, unit: &str) -> bool {
    fs::symlink_metadata(root.path(LINK)).is_ok_and(|meta| meta.is_symlink()) && same_file(root, LINK, unit)
}

/// Whether a link starts eke at boot, whoever made it.
pub(super) fn is_linked(root: &Root) -> bool {
    fs::read_link(root.path(LINK)).is_ok_and(|target| target.ends_with("eke.service"))
}

/// Removes the link that `systemctl enable` made. The journal does not need it: it would restore what `disable` removes.
pub(super) fn remove_link(root: &Root) -> Result<bool> {
    if !is_linked(root) {
        return Ok(false);
    }
    let path = root.path(LINK);
    sys::of(root).remove(&path).map_err(|e| Error::io("remove", &path, e))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_of_a_unit_is_found() {
        let unit = |line: &str| started(&format!("[Service]\nExecStartPre=/usr/bin/eke up\n{line}\n"));
        assert_eq!(unit("ExecStart=/usr/bin/eke-agent").as_deref(), Some("/usr/bin/eke-agent"));
        assert_eq!(unit(" ExecStart=-/opt/eke-agent --config x").as_deref(), Some("/opt/eke-agent"));
        assert_eq!([unit("ExecStart=eke-agent"), unit("ExecStart=/usr/bin/other")], [None, None]);
    }
}

//! Names of eke's cgroups: `LABEL-PID-START`. The start time distinguishes the owner from a later process with the same
//! pid.

pub use eke_model::process::ProcessId as Owner;

use crate::error::{Error, Result};
use crate::parse::process_stat;
use crate::read;
use crate::root::Root;

/// The name of a cgroup that this process creates.
///
/// # Errors
/// `Refused` if the label is not letters and digits; the kernel's answer if `/proc/self` cannot be read.
pub fn of_this_process(root: &Root, label: &str) -> Result<String> {
    if label.is_empty() || !label.chars().all(|c| c.is_ascii_alphanumeric()) {
        return Err(Error::Refused(format!(
            "\"{label}\" is not a label for a group: give letters and digits"
        )));
    }
    let pid = std::process::id();
    let owner = this_process(root)?.ok_or_else(|| Error::Malformed {
        path: root.path(format!("proc/{pid}/stat")),
        message: "found no start time; is /proc mounted?".to_owned(),
    })?;
    Ok(format!("{label}-{owner}"))
}

/// This process; `None` if `/proc` does not show it.
///
/// # Errors
/// The kernel's answer.
pub fn this_process(root: &Root) -> Result<Option<Owner>> {
    let pid = std::process::id();
    Ok(start(root, pid)?.map(|start_ticks| Owner { pid, start_ticks }))
}

/// The owner in a name that ends in `-PID-START`; `None` for any other name.
pub fn owner(name: &str) -> Option<Owner> {
    let (rest, start) = name.rsplit_once('-')?;
    let (label, pid) = rest.rsplit_once('-')?;
    let owner = Owner { pid: pid.parse().ok()?, start_ticks: start.parse().ok()? };
    (!label.is_empty()).then_some(owner)
}

/// Whether the owner still runs. A killed process does not, even while one of its threads waits for a disk (state Z,
/// proc_pid_stat(5)).
///
/// # Errors
/// The kernel's answer; the caller must then assume that the owner runs.
pub fn is_alive(root: &Root, owner: Owner) -> Result<bool> {
    Ok(start(root, owner.pid)? == Some(owner.start_ticks))
}

fn start(root: &Root, pid: u32) -> Result<Option<u64>> {
    if !read::answers(root, pid) {
        return Err(Error::Refused(format!("process {pid} cannot be identified: it is within execve(2)")));
    }
    match root.read(format!("proc/{pid}/stat")) {
        Ok(text) => Ok(start_ticks(&text)),
        // Reading a process that ends meanwhile fails with ESRCH.
        Err(Error::Io { source, .. }) if source.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        Err(e) if e.is_absent() => Ok(None),
        Err(e) => Err(e),
    }
}

/// Its start time; `None` for a zombie.
fn start_ticks(text: &str) -> Option<u64> {
    process_stat::parse(text).filter(|stat| !stat.has_ended()).map(|stat| stat.start_ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_contains_its_owner() {
        let o = Owner { pid: 12, start_ticks: 345 };
        assert_eq!(owner(&format!("box-{o}")), Some(o));
        for other in ["box", "box-12", "-12-345", "box-x-345", "box-12-x", "12-345", ""] {
            assert_eq!(owner(other), None, "{other}");
        }
    }

    #[test]
    fn the_start_time_is_field_22() {
        let text = "42 (a) b (c) S 1 1 1 0 -1 4 0 0 0 0 30 12 0 0 20 0 1 0 98765 1 1";
        assert_eq!(start_ticks(text), Some(98_765));
        assert_eq!(start_ticks("garbage"), None);
        assert_eq!(start_ticks(&text.replace(" S ", " Z ")), None, "killed");
    }

    #[test]
    fn this_process_is_alive_and_its_number_with_another_start_is_not() {
        let root = Root::host();
        let me = owner(&of_this_process(&root, "test").unwrap()).unwrap();
        assert!(is_alive(&root, me).unwrap());
        assert!(!is_alive(&root, Owner { start_ticks: me.start_ticks + 1, ..me }).unwrap());
        assert!(of_this_process(&root, "a/b").is_err());
    }
}

//! An agent whose program was replaced by a newer one.

use std::path::{Path, PathBuf};

use eke_linux::Root;
use eke_present::exit::{Failure, Outcome, Status};

use super::start;
use super::stop::{Stopped, running, stop};
use super::systemd::of_service;

/// Whether the program of a running agent was replaced or removed: it is of an older version. False without the right to see that.
pub fn is_outdated(root: &Root) -> bool {
    running(root).is_some_and(|pid| exe(pid).is_some_and(|exe| is_gone(&exe)))
}

/// Starts the installed agent in place of the running one, with its configuration.
///
/// # Errors
/// The running one does not end, or as [`start`].
pub fn replace(root: &Root, config: Option<&str>) -> Outcome<()> {
    of_service(root, "try-restart");
    let Some(pid) = running(root).filter(|_| is_outdated(root)) else { return Ok(()) };
    let words = root.read(format!("proc/{pid}/cmdline")).unwrap_or_default();
    if let Stopped::Hangs(hung) = stop(root)? {
        return Err(Failure::new(Status::NoAgent, hung.sentence()));
    }
    start(root, config.or_else(|| config_of(&words))).map(drop)
}

fn exe(pid: u32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// proc_pid_exe(5)
fn is_gone(exe: &Path) -> bool {
    exe.as_os_str().as_encoded_bytes().ends_with(b" (deleted)")
}

/// The file that an agent was started with.
fn config_of(cmdline: &str) -> Option<&str> {
    cmdline.split('\0').skip_while(|word| *word != "--config").nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_whose_program_was_replaced_is_outdated() {
        assert!(is_gone(Path::new("/usr/bin/eke-agent (deleted)")));
        assert!(!is_gone(Path::new("/usr/bin/eke-agent")) && !is_gone(Path::new("/deleted/eke-agent")));
        assert!(exe(std::process::id()).is_some_and(|exe| exe.is_absolute()));
    }

    #[test]
    fn the_next_agent_gets_the_configuration_of_the_one_before() {
        assert_eq!(config_of("/usr/bin/eke-agent\0--config\0/root/a b.toml\0"), Some("/root/a b.toml"));
        assert_eq!([config_of("/usr/bin/eke-agent\0--up\0"), config_of("")], [None, None]);
    }
}

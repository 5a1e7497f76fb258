//! The user who runs ssh, and whether ssh may ask for a password.

use std::fs::OpenOptions;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::Command;

use eke_link::measure::{Ssh, User};

use crate::args::link::Link;

/// The system's ssh. Under sudo it runs as the user who called sudo, with that user's keys, known hosts and configuration.
pub fn ssh(options: &Link, json: bool) -> Ssh {
    Ssh {
        config: options.ssh_config.clone(),
        as_user: user(),
        // ssh asks on the controlling terminal, not on standard input
        may_ask: !json && OpenOptions::new().read(true).write(true).open("/dev/tty").is_ok(),
        ..Ssh::default()
    }
}

/// The user who called sudo; `None` without sudo.
pub fn user() -> Option<User> {
    let (uid, gid) = sudo_user()?;
    Some(User { uid, gid, name: std::env::var("SUDO_USER").ok(), home: home(uid) })
}

/// By getent(1), since the user may be one of a directory service.
fn home(uid: u32) -> Option<PathBuf> {
    let output = Command::new("getent").args(["passwd", &uid.to_string()]).output().ok()?;
    let line = String::from_utf8_lossy(&output.stdout).into_owned();
    line.trim_end().split(':').nth(5).filter(|home| home.starts_with('/')).map(PathBuf::from)
}

/// The user and group who called sudo; `None` without sudo.
pub fn sudo_user() -> Option<(u32, u32)> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
    let user = number("SUDO_UID").zip(number("SUDO_GID"))?;
    (rustix::process::geteuid().is_root() && user.0 != 0).then_some(user)
}

/// Prints a progress line on standard error, if that is a terminal.
pub fn progress(json: bool, host: Option<&str>, line: &str) {
    if !json && std::io::stderr().is_terminal() {
        eke_present::warn!("{}{line} ...", host.map_or(String::new(), |h| format!("{h}: ")));
    }
}

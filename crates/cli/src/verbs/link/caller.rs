//! Who calls ssh, and whether it may ask.

use std::fs::OpenOptions;
use std::io::IsTerminal;

use eke_link::measure::Ssh;

use crate::args::link::Link;

/// The system's ssh. Below sudo it runs as the user who called that: keys, known hosts and configuration are that one's.
pub fn ssh(options: &Link, json: bool) -> Ssh {
    Ssh {
        config: options.ssh_config.clone(),
        as_user: sudo_user(),
        // ssh asks on the terminal itself, whatever standard input and output are
        may_ask: !json && OpenOptions::new().read(true).write(true).open("/dev/tty").is_ok(),
        ..Ssh::default()
    }
}

fn sudo_user() -> Option<(u32, u32)> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
    let user = number("SUDO_UID").zip(number("SUDO_GID"))?;
    (rustix::process::geteuid().is_root() && user.0 != 0).then_some(user)
}

/// A line about what is under way, for whoever waits.
pub fn tell(json: bool, host: Option<&str>, line: &str) {
    if !json && std::io::stderr().is_terminal() {
        eke_present::warn!("{}{line} ...", host.map_or(String::new(), |h| format!("{h}: ")));
    }
}

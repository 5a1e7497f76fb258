//! `eke notify`: important events of the agent as notifications on the user's desktop.
//!
//! It runs as the user, connects to the agent's public socket, asks to watch, and then blocks on the socket: it uses no
//! CPU time between events. While no agent runs it tries once a minute.

mod limit;
mod send;

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use eke_model::snapshot::{Event, Request, Response};
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::{putln, warn};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::Context;
use limit::Limit;
use send::Sender;

const RETRY: Duration = Duration::from_secs(60);
/// A line of the agent is shorter; a longer one is not the agent's.
const LONGEST_LINE: u64 = 65_536;

/// The verb. It ends with its parent, the session.
pub fn run(context: &Context) -> Outcome {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let Some(sender) = Sender::find(&path) else {
        let failure = Failure::new(Status::NotInstalled, "neither notify-send nor busctl is installed");
        return Err(failure.hint("the package is libnotify-bin (Debian, Ubuntu) or libnotify (Fedora, Arch)"));
    };
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    putln!("Important events of eke's agent appear on this desktop until Ctrl-C.");
    let kept = state_file();
    let mut limit = Limit::after(kept.as_deref().map_or(0, newest_shown));
    loop {
        if let Ok(stream) = eke_client::agent::watching(&context.root) {
            watch(stream, |event| {
                let now_s = eke_client::unix_s();
                let Some(text) = limit.admit(event, now_s) else { return };
                match sender.show(&text) {
                    Ok(()) => remember(kept.as_deref(), event.unix_s, now_s),
                    Err(why) => warn!("eke: a notification is not shown: {why}"),
                }
            })?;
        }
        context.root.sleep(RETRY);
    }
}

/// Calls `show` for each event until the agent ends.
fn watch(mut stream: UnixStream, mut show: impl FnMut(&Event)) -> Outcome<()> {
    let mut request = serde_json::to_string(&Request::Watch)?;
    request.push('\n');
    if stream.write_all(request.as_bytes()).is_err() {
        return Ok(());
    }
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        match reader.by_ref().take(LONGEST_LINE).read_line(&mut line) {
            Ok(0) | Err(_) => return Ok(()),
            Ok(_) => {}
        }
        match serde_json::from_str(&line) {
            Ok(Response::Event(event)) => show(&event),
            Ok(Response::Refused { .. }) => {
                let failure = Failure::new(Status::Failed, "the running agent is older and sends no events");
                return Err(failure.hint("restart it: `sudo systemctl restart eke`"));
            }
            Ok(_) => {}
            Err(_) => return Ok(()),
        }
    }
}

/// `$XDG_STATE_HOME/eke/notified`: the time of the newest event that was shown.
fn state_file() -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let state = named("XDG_STATE_HOME").or_else(|| Some(named("HOME")?.join(".local/state")))?;
    Some(state.join("eke/notified"))
}

fn newest_shown(file: &Path) -> u64 {
    fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// Without this file an event is shown again at the next login. A time after now is of a clock that was ahead.
fn remember(file: Option<&Path>, unix_s: u64, now_s: u64) {
    let unix_s = unix_s.min(now_s);
    let is_newer = |file: &&Path| !(unix_s..=now_s).contains(&newest_shown(file));
    let Some(file) = file.filter(is_newer) else { return };
    let dir = file.parent().unwrap_or(Path::new("."));
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    let opened =
        made.and_then(|()| OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file));
    let _ = opened.and_then(|mut opened| writeln!(opened, "{unix_s}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_remembered_and_never_an_older_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a/eke/notified");
        assert_eq!(newest_shown(&file), 0);
        remember(Some(&file), 7, 8);
        remember(Some(&file), 5, 8);
        assert_eq!(newest_shown(&file), 7);
        remember(Some(&file), 6, 6);
        assert_eq!(newest_shown(&file), 6, "the clock was ahead");
        remember(Some(&file), 4_000_000_000, 9);
        assert_eq!(newest_shown(&file), 9);
    }

    #[test]
    fn events_are_shown_until_the_agent_ends_and_an_older_agent_is_reported() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let event = r#"{"answer":"event","unix_s":7,"text":"a","important":true}"#;
        there.write_all(format!("{{\"answer\":\"done\"}}\n{event}\n{event}\n").as_bytes()).unwrap();
        there.shutdown(std::net::Shutdown::Write).unwrap();
        let mut shown = Vec::new();
        watch(here, |event| shown.push(event.unix_s)).unwrap();
        assert_eq!(shown, [7, 7]);
        let (here, mut there) = UnixStream::pair().unwrap();
        there.write_all(b"{\"answer\":\"refused\",\"reason\":\"x\",\"needs_root\":false}\n").unwrap();
        assert!(watch(here, |_| ()).unwrap_err().message().contains("older"));
    }
}

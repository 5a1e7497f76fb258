//! Asks a far end whether it has something to do.

use std::process::{Child, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::collect::Collected;
use super::ssh::Ssh;
use crate::busy::{COMMAND, why_busy};
use crate::error::{Error, Result};
use crate::parse::refusal::refusal;

/// More than ssh's own limit for connecting, which has a better message.
const ANSWERS_WITHIN: Duration = Duration::from_secs(15);
/// The last of its output comes at its end.
const ENDS_WITHIN: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);

/// Fails if the host is busy. One short connection in its configured cipher.
///
/// # Errors
/// [`Error::Busy`]; ssh does not reach it, or it does not answer; a signal came.
pub fn check(ssh: &Ssh, host: &str, shutdown: &AtomicBool) -> Result<()> {
    check_within(ssh, host, ANSWERS_WITHIN, shutdown)
}

fn check_within(ssh: &Ssh, host: &str, time: Duration, shutdown: &AtomicBool) -> Result<()> {
    Ssh::check(host)?;
    let mut command = ssh.connection(host, None, &["-T"], COMMAND);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|source| ssh.cannot_start(source))?;
    let (out, errors) = (Collected::of(child.stdout.take()), Collected::of(child.stderr.take()));
    let ended = wait(&mut child, Instant::now() + time, shutdown);
    if !matches!(ended, Ok(Some(_))) {
        let _ = child.kill();
        let _ = child.wait();
    }
    let host = || host.to_owned();
    let status =
        ended?.ok_or_else(|| Error::Stalled { host: host(), doing: "it told whether it is idle" })?;
    if !status.success() {
        let refusal = refusal(&errors.rest(ENDS_WITHIN));
        return Err(Error::Refused { host: host(), refusal, may_ask: ssh.may_ask });
    }
    match why_busy(&out.rest(ENDS_WITHIN)) {
        Some(why) => Err(Error::Busy { host: host(), why }),
        None => Ok(()),
    }
}

/// `None`: it still runs then.
fn wait(child: &mut Child, until: Instant, shutdown: &AtomicBool) -> Result<Option<ExitStatus>> {
    loop {
        if shutdown.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let status = child.try_wait().map_err(|source| Error::Pipe { what: "wait for", source })?;
        if status.is_some() || Instant::now() >= until {
            return Ok(status);
        }
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ssh whose far end does this.
    fn asked(script: &str, time: Duration, shutdown: bool) -> Result<()> {
        let dir = tempfile::tempdir().unwrap();
        eke_testkit::tree::put(dir.path(), "ssh", script);
        let ssh = Ssh { words: vec!["sh".into(), dir.path().join("ssh").into()], ..Ssh::default() };
        check_within(&ssh, "far", time, &AtomicBool::new(shutdown))
    }

    #[test]
    fn a_far_end_that_hangs_or_never_stops_is_given_up() {
        for script in ["exec sleep 1000", "exec yes", "exec yes >&2"] {
            let given_up = asked(script, Duration::ZERO, false);
            assert!(matches!(given_up, Err(Error::Stalled { .. })), "{script}: {given_up:?}");
            let interrupted = asked(script, ANSWERS_WITHIN, true);
            assert!(matches!(interrupted, Err(Error::Interrupted)), "{script}: {interrupted:?}");
        }
    }

    #[test]
    fn the_answer_decides() {
        let long = Duration::from_secs(1000);
        assert!(asked("printf '0.1 0 0 1/1 1\\n2\\n'", long, false).is_ok());
        let busy = asked("printf '9.0 0 0 1/1 1\\n2\\n'", long, false);
        assert!(matches!(busy, Err(Error::Busy { .. })), "{busy:?}");
        let refused = asked("echo 'a@far: Permission denied (publickey).' >&2; exit 255", long, false);
        assert!(
            matches!(
                refused,
                Err(Error::Refused { refusal: crate::parse::refusal::Refusal::NotAuthenticated(_), .. })
            ),
            "{refused:?}"
        );
    }
}

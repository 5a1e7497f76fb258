//! A child process that the agent starts, watches, and starts again if it ends, each time after a longer pause.

use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use eke_model::snapshot::Message;

use crate::training::Training;

/// The first pause before a restart, in milliseconds; it doubles each time.
const FIRST_PAUSE_MS: u64 = 5_000;
const LONGEST_PAUSE_MS: u64 = 600_000;
/// A child that ran this long gets the first pause again.
const STEADY_MS: u64 = 600_000;

/// A child process that the agent supervises.
#[derive(Debug)]
pub struct ChildService {
    /// The program and its arguments; `None` starts nothing.
    command: Option<(PathBuf, Vec<String>)>,
    child: Option<(Child, u64)>,
    pause_ms: u64,
    not_before_ms: u64,
}

impl ChildService {
    /// Supervises nothing.
    pub fn none() -> Self {
        Self { command: None, child: None, pause_ms: FIRST_PAUSE_MS, not_before_ms: 0 }
    }

    /// Supervises `program`. It must end when the agent does (`PR_SET_PDEATHSIG`).
    pub fn of(program: PathBuf, arguments: Vec<String>) -> Self {
        Self { command: Some((program, arguments)), ..Self::none() }
    }

    /// Its process id, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(|(child, _)| child.id())
    }

    /// One round at `now_ms` on any monotonic clock: starts the child if it is wanted and the pause is over, stops it
    /// if it is not wanted. Returns a message for the log, if something happened.
    pub fn supervise(&mut self, wanted: bool, now_ms: u64) -> Option<Message> {
        if let Some((child, began_ms)) = &mut self.child {
            return match child.try_wait() {
                Ok(Some(status)) => {
                    let ran_ms = now_ms.saturating_sub(*began_ms);
                    Some(self.ended(status, ran_ms, wanted, now_ms))
                }
                Ok(None) if !wanted => self.stop(),
                Ok(None) => None,
                Err(e) => Some(format!("The state of the child process cannot be read: {e}.").into()),
            };
        }
        (wanted && now_ms >= self.not_before_ms).then(|| self.start(now_ms)).flatten()
    }

    fn start(&mut self, now_ms: u64) -> Option<Message> {
        let (program, arguments) = self.command.as_ref()?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
        match command.spawn() {
            Ok(child) => {
                let sentence = format!("Started {} (process {}).", program.display(), child.id());
                self.child = Some((child, now_ms));
                Some(sentence.into())
            }
            Err(e) => {
                let program = program.display().to_string();
                let next_s = self.postpone(now_ms) / 1_000;
                Some(Message::important(format!(
                    "{program} cannot be started: {e}. The next try is in {next_s} s."
                )))
            }
        }
    }

    fn ended(&mut self, status: ExitStatus, ran_ms: u64, wanted: bool, now_ms: u64) -> Message {
        self.child = None;
        let ran_s = ran_ms / 1_000;
        if !wanted {
            return format!("The child process ended ({status}) after {ran_s} s, as requested.").into();
        }
        if ran_ms >= STEADY_MS {
            self.pause_ms = FIRST_PAUSE_MS;
        }
        let next_s = self.postpone(now_ms) / 1_000;
        let name = self.command.as_ref().and_then(|(program, _)| program.file_name());
        let name =
            name.map_or_else(|| "The child process".into(), |name| name.to_string_lossy().into_owned());
        Message::important(format!(
            "{name} ended ({status}) after {ran_s} s; the next start is in {next_s} s."
        ))
    }

    /// Postpones the next start; returns the pause in milliseconds.
    fn postpone(&mut self, now_ms: u64) -> u64 {
        let pause_ms = self.pause_ms;
        self.not_before_ms = now_ms.saturating_add(pause_ms);
        self.pause_ms = pause_ms.saturating_mul(2).min(LONGEST_PAUSE_MS);
        pause_ms
    }

    /// Sends SIGTERM; the next call of `supervise` waits for the child.
    fn stop(&mut self) -> Option<Message> {
        let (child, _) = self.child.as_ref()?;
        let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).ok()?)?;
        let asked = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        asked.err().map(|e| format!("The process {} cannot be ended: {e}.", child.id()).into())
    }
}

/// The children of the agent.
#[derive(Debug)]
pub struct ChildServices {
    /// `eke-prefetch`.
    pub prefetch: ChildService,
    /// `eke-io govern`.
    pub io: ChildService,
    /// `eke lab retrain`.
    pub training: Training,
}

impl From<ChildService> for ChildServices {
    /// Supervises only `eke-prefetch`.
    fn from(prefetch: ChildService) -> Self {
        Self { prefetch, io: ChildService::none(), training: Training::default() }
    }
}

#[cfg(test)]
mod tests {
    use eke_testkit::wait::wait_for;

    use super::*;

    fn sh(script: &str) -> ChildService {
        ChildService::of("/bin/sh".into(), vec!["-c".into(), script.into()])
    }

    /// Supervises until it returns a sentence.
    fn next(child: &mut ChildService, wanted: bool, now_ms: u64) -> String {
        wait_for("a sentence", || child.supervise(wanted, now_ms)).text
    }

    #[test]
    fn it_is_started_again_each_time_later() {
        let mut child = sh("exit 3");
        assert!(child.supervise(false, 0).is_none() && child.pid().is_none());
        assert!(next(&mut child, true, 0).starts_with("Started /bin/sh"));
        assert!(
            next(&mut child, true, 1_000).contains("exit status: 3) after 1 s; the next start is in 5 s")
        );
        assert!(child.supervise(true, 5_999).is_none() && child.pid().is_none());
        assert!(next(&mut child, true, 6_000).starts_with("Started"));
        assert!(next(&mut child, true, 6_000).contains("in 10 s"));
        assert!(next(&mut child, true, 16_000).starts_with("Started"));
        assert!(next(&mut child, true, 16_000 + STEADY_MS).contains("in 5 s"), "it was steady");
    }

    #[test]
    fn it_ends_when_it_is_not_wanted() {
        let mut child = sh("exec sleep 1000");
        next(&mut child, true, 0);
        let sentence = next(&mut child, false, 0);
        assert!(sentence.contains("signal: 15") && sentence.ends_with("as requested."), "{sentence}");
        assert!(child.pid().is_none());
    }

    #[test]
    fn a_missing_program_is_reported_and_tried_later() {
        let mut child = ChildService::of("/nowhere/eke-prefetch".into(), Vec::new());
        let sentence = next(&mut child, true, 0);
        assert!(sentence.starts_with("/nowhere/eke-prefetch cannot be started: No such file"), "{sentence}");
        assert!(child.supervise(true, 4_999).is_none());
        assert!(ChildService::none().supervise(true, 0).is_none());
    }
}

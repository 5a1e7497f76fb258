//! The process that trains a dictionary anew ([`eke_swap::retrain`]): it needs more memory than the agent may have, once.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use eke_model::snapshot::Message;
use rustix::process::{Pid, Signal, kill_process};

/// At most one such process.
#[derive(Debug, Default)]
pub struct Training {
    /// The program and its arguments; `None` starts nothing.
    command: Option<(PathBuf, Vec<String>)>,
    child: Option<Child>,
}

impl Training {
    /// By this program, with these arguments. It must end when the agent does (`PR_SET_PDEATHSIG`).
    pub fn of(program: PathBuf, arguments: Vec<String>) -> Self {
        Self { command: Some((program, arguments)), child: None }
    }

    /// Starts it.
    ///
    /// # Errors
    /// Why it cannot be started, as a message.
    pub fn start(&mut self) -> Result<(), Message> {
        let failed = |why: String| Message::important(format!("No new dictionary can be trained: {why}."));
        let (program, arguments) =
            self.command.as_ref().ok_or_else(|| failed("the agent's program is gone".into()))?;
        let child = Command::new(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        self.child =
            Some(child.map_err(|e| failed(format!("{} cannot be started: {e}", program.display())))?);
        Ok(())
    }

    /// Ends it, by SIGTERM: memory is short.
    pub fn stop(&self) {
        let pid = self.child.as_ref().and_then(|child| Pid::from_raw(i32::try_from(child.id()).ok()?));
        // It may have ended.
        let _ = pid.map(|pid| kill_process(pid, Signal::TERM));
    }

    /// Whether it has ended since the last call. Its record says how, also if it was killed.
    pub fn has_ended(&mut self) -> bool {
        let has_ended = self.child.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None)));
        if has_ended {
            self.child = None;
        }
        has_ended
    }
}

#[cfg(test)]
mod tests {
    use eke_testkit::wait::wait_for;

    use super::*;

    #[test]
    fn its_end_is_reported_once() {
        let mut training = Training::of("/bin/sh".into(), vec!["-c".into(), "exit 3".into()]);
        assert!(!training.has_ended());
        training.start().unwrap();
        wait_for("its end", || training.has_ended());
        assert!(!training.has_ended());
    }

    #[test]
    fn it_is_stopped() {
        let mut training = Training::of("/bin/sleep".into(), vec!["1000".into()]);
        training.stop();
        training.start().unwrap();
        training.stop();
        wait_for("its end", || training.has_ended());
    }

    #[test]
    fn a_program_that_is_gone_is_named() {
        let mut training = Training::of("/nowhere/eke".into(), Vec::new());
        let why = training.start().unwrap_err().text;
        assert!(
            why.starts_with("No new dictionary can be trained: /nowhere/eke cannot be started: No such"),
            "{why}"
        );
        assert!(!training.has_ended() && Training::default().start().is_err());
    }
}

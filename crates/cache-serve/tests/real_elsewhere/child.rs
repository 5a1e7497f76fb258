//! Processes of users that may wait for the file system: never this process, which serves it.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};

use crate::common::LONG;

/// A process. Drop kills it and waits for its end, so what it waits for must have ended.
pub struct Child {
    process: std::process::Child,
    stdin: Option<ChildStdin>,
    /// True once it said so.
    ready: Receiver<bool>,
    /// Standard output and standard error.
    texts: Receiver<(String, String)>,
}

impl Child {
    /// A shell of this user that runs a script, with the path as its first argument.
    pub fn shell(script: &str, path: &Path, user: u32) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(path).uid(user).gid(user).env("LC_ALL", "C");
        Self::start(&mut command)
    }

    pub fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let (out, mut err) = (process.stdout.take().unwrap(), process.stderr.take().unwrap());
        let ((is_ready, ready), (send, texts)) = (channel(), channel());
        std::thread::spawn(move || {
            let mut out = BufReader::new(out);
            let (mut text, mut error) = (String::new(), String::new());
            let mut next =
                || out.read_line(&mut text).is_ok_and(|n| n > 0).then(|| text.ends_with("ready\n"));
            let _ = is_ready.send(std::iter::from_fn(&mut next).any(|ready| ready));
            let _ = (out.read_to_string(&mut text), err.read_to_string(&mut error));
            let _ = send.send((text, error));
        });
        Self { stdin: process.stdin.take(), process, ready, texts }
    }

    /// Waits until it says so.
    pub fn is_ready(&self) {
        assert!(self.ready.recv_timeout(LONG).unwrap(), "a process ended too early");
    }

    /// Lets it go on.
    pub fn go(&mut self) {
        writeln!(self.stdin.take().unwrap(), "go").unwrap();
    }

    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().unwrap()
    }

    /// Waits for its end. Its output, or its errors if it failed.
    pub fn output(mut self) -> Result<String, String> {
        drop(self.stdin.take());
        let status = eke_testkit::wait::wait_for("the end of a process", || self.exit_status());
        let (text, error) = self.texts.recv_timeout(LONG).unwrap();
        if status.success() { Ok(text) } else { Err(error) }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        // One that cannot be killed ends with the file system, which ends after this.
        for _ in 0..1000 {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

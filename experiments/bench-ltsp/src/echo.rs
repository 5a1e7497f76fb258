//! A login at the server's end that stays open while a client is under load: each line must come back.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use eke_bench_core::fault::on;

use crate::error::Result;
use crate::network::Network;
use crate::plan::addresses;

/// Between two lines.
const PAUSE: Duration = Duration::from_millis(500);

/// The client starts its ssh server when it has said that its session has ended, so ssh tries again for a minute, once a second.
const OPTIONS: [&str; 6] = [
    "StrictHostKeyChecking=no",
    "UserKnownHostsFile=/dev/null",
    "RequestTTY=no",
    "ConnectTimeout=120",
    "ConnectionAttempts=60",
    "BatchMode=yes",
];

/// An open login. [`Login::end`] returns the seconds of each line's way there and back.
#[derive(Debug)]
pub struct Login {
    child: Child,
    stop: Sender<()>,
    thread: JoinHandle<Vec<f64>>,
}

impl Login {
    /// Begins to log in to a client; the client sees a file when it is done.
    ///
    /// # Errors
    /// ssh does not start.
    pub fn begin(network: &Network, key: &Path, client: usize) -> Result<Self> {
        let mut command = network.command(Path::new("ssh"));
        command
            .args(["-F", "/dev/null"])
            .args(OPTIONS.iter().flat_map(|option| ["-o", option]))
            .arg("-i")
            .arg(key);
        command.arg(format!("root@{}", addresses(client).1)).arg("touch /run/eke-bench-login; exec cat");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(on("start", Path::new("ssh")))?;
        let (stop, stopped) = channel();
        let to = child.stdin.take();
        let answers = lines(child.stdout.take());
        let thread =
            std::thread::spawn(move || to.map_or_else(Vec::new, |to| echoes(to, &answers, &stopped)));
        Ok(Self { child, stop, thread })
    }

    /// Ends the login. A line that did not come back counts until now; without a login there are none.
    #[must_use]
    pub fn end(mut self) -> Vec<f64> {
        let _ = self.stop.send(());
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.thread.join().unwrap_or_default()
    }
}

fn lines(from: Option<std::process::ChildStdout>) -> Receiver<()> {
    let (to, answers) = channel();
    std::thread::spawn(move || {
        let Some(from) = from else { return };
        for line in BufReader::new(from).lines() {
            if line.is_err() || to.send(()).is_err() {
                return;
            }
        }
    });
    answers
}

/// The first line is the login, and counts as none.
fn echoes(mut to: ChildStdin, answers: &Receiver<()>, stopped: &Receiver<()>) -> Vec<f64> {
    let mut seconds = Vec::new();
    let mut is_in = false;
    loop {
        let sent = Instant::now();
        if to.write_all(b"x\n").is_err() {
            return seconds;
        }
        loop {
            let answer = answers.recv_timeout(PAUSE);
            let is_over = stopped.try_recv().is_ok() || matches!(answer, Err(RecvTimeoutError::Disconnected));
            if (answer.is_ok() || is_over) && is_in {
                seconds.push(sent.elapsed().as_secs_f64());
            }
            if is_over {
                return seconds;
            }
            if answer.is_ok() {
                is_in = true;
                break;
            }
        }
        if !matches!(stopped.recv_timeout(PAUSE), Err(RecvTimeoutError::Timeout)) {
            return seconds;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::OPTIONS;

    #[test]
    fn a_refused_connection_is_tried_again() {
        assert!(OPTIONS.contains(&"ConnectionAttempts=60"));
    }
}

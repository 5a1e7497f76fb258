//! The shell in the machine: sends a script, and reads until it has ended.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// A connection to the machine's shell.
#[derive(Debug)]
pub struct Shell {
    stream: UnixStream,
    came: Vec<u8>,
    count: u32,
}

/// A script that ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit status
    pub status: i32,
    /// What it printed
    pub output: String,
}

/// Time for a script's end beyond its own limit, which the machine keeps: its clock may be slow.
const GRACE: Duration = Duration::from_secs(120);
/// More than a read waits
const LONGEST_TURN: Duration = Duration::from_secs(1);

impl Shell {
    /// Connects to the socket, which QEMU makes.
    ///
    /// # Errors
    /// No socket within `within`.
    pub fn connect(socket: &Path, within: Duration) -> anyhow::Result<Self> {
        let end = Instant::now() + within;
        loop {
            match UnixStream::connect(socket) {
                Ok(stream) => return Self::on(stream),
                Err(error) if Instant::now() > end => {
                    return Err(error).with_context(|| format!("cannot connect to {}", socket.display()));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    fn on(stream: UnixStream) -> anyhow::Result<Self> {
        stream.set_read_timeout(Some(Duration::from_millis(200)))?;
        stream.set_write_timeout(Some(GRACE))?;
        Ok(Self { stream, came: Vec::new(), count: 0 })
    }

    /// Waits until the shell of a machine that starts is ready.
    ///
    /// # Errors
    /// The machine ended or is not ready in time.
    pub fn ready(&mut self, within: Duration) -> anyhow::Result<()> {
        self.until("@field-ready ", within).map(drop)
    }

    /// Runs a script.
    ///
    /// # Errors
    /// The machine ended, or its shell does not answer even after the time limit, which is the script's (status 124).
    pub fn run(&mut self, script: &str, limit: Duration) -> anyhow::Result<Ended> {
        self.count += 1;
        self.stream
            .write_all(wrapped(script, self.count, limit).as_bytes())
            .context("the machine's shell")?;
        let mark = format!("@field-done {} ", self.count);
        let (output, rest) = self.until(&mark, limit + GRACE)?;
        let status = rest.trim().parse().with_context(|| format!("no exit status: {rest}"))?;
        Ok(Ended { status, output })
    }

    /// Sends a command that does not end, such as a reboot.
    ///
    /// # Errors
    /// The machine ended.
    pub fn send(&mut self, command: &str) -> anyhow::Result<()> {
        self.stream.write_all(format!("{command} &\n").as_bytes()).context("the machine's shell")
    }

    /// The text until a line that starts with `mark`, and the rest of that line. The time while this process is stopped does not count.
    fn until(&mut self, mark: &str, within: Duration) -> anyhow::Result<(String, String)> {
        let mut waited = Duration::ZERO;
        loop {
            let start = Instant::now();
            if let Some(found) = split(&mut self.came, mark) {
                return Ok(found);
            }
            let mut part = [0; 4096];
            match self.stream.read(&mut part) {
                Ok(0) => bail!("the machine ended{}", self.last()),
                Ok(count) => self.came.extend_from_slice(part.get(..count).unwrap_or_default()),
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    ) => {}
                Err(error) => return Err(error).context("the machine's shell"),
            }
            waited += start.elapsed().min(LONGEST_TURN);
            if waited > within {
                bail!("the machine did not answer for {} s{}", within.as_secs(), self.last());
            }
        }
    }

    fn last(&self) -> String {
        let text = String::from_utf8_lossy(&self.came);
        text.lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .map(|line| format!(" after: {line}"))
            .unwrap_or_default()
    }
}

/// The commands that run a script under a time limit and print how it ended.
fn wrapped(script: &str, number: u32, limit: Duration) -> String {
    format!(
        "cat >/tmp/field-step <<'@field-end'\n{script}\n@field-end\n\
         (echo 0 >/proc/self/oom_score_adj; exec timeout -k 20 {} sh /tmp/field-step) </dev/null 2>&1\n\
         printf '\\n@field-done {number} %s\\n' $?\n",
        limit.as_secs()
    )
}

/// Takes the text until a whole line that starts with `mark` out of what came.
fn split(came: &mut Vec<u8>, mark: &str) -> Option<(String, String)> {
    let text = String::from_utf8_lossy(came).into_owned();
    let at = if text.starts_with(mark) { 0 } else { text.find(&format!("\n{mark}"))? + 1 };
    let (output, line) = text.split_at(at);
    let (line, rest) = line.split_once('\n')?;
    *came = rest.as_bytes().to_vec();
    Some((output.replace('\r', ""), line.get(mark.len()..).unwrap_or_default().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{Ended, Shell, split};
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    #[test]
    fn text_is_taken_until_the_mark() {
        let mut came = b"one\r\ntwo @m 1\n@m 0".to_vec();
        assert_eq!(split(&mut came, "@m "), None);
        came.extend_from_slice(b"\nnext");
        assert_eq!(split(&mut came, "@m "), Some(("one\ntwo @m 1\n".into(), "0".into())));
        assert_eq!(came, b"next");
    }

    #[test]
    fn a_shell_runs_scripts_and_ends() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let input = theirs.try_clone().unwrap();
        let mut child = Command::new("sh")
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(input)))
            .stdout(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
            .spawn()
            .unwrap();
        let mut shell = Shell::on(ours).unwrap();
        let minute = Duration::from_secs(60);
        let ended = shell.run("echo \"it's $((1 + 1))\"\nexit 3", minute).unwrap();
        assert_eq!(ended, Ended { status: 3, output: "it's 2\n\n".into() });
        assert_eq!(shell.run("cat; sleep 60", Duration::from_secs(1)).unwrap().status, 124);
        shell.stream.write_all(b"exit 0\n").unwrap();
        child.wait().unwrap();
        assert!(shell.run("true", minute).is_err());
    }
}

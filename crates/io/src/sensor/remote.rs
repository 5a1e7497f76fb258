//! A sensor in a process of its own, `eke-io sense`. For each line on its standard input it prints a window as a line of JSON. It ends when its
//! input ends, so it outlives its owner in no case.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::{Attribution, Refused, SensorOptions, WindowSource};
use crate::counters::Window;

/// The process.
#[derive(Debug)]
pub struct RemoteSensor {
    child: Child,
    /// `None` once its input is closed.
    requests: Option<ChildStdin>,
    windows: BufReader<ChildStdout>,
}

impl RemoteSensor {
    /// Starts `program` (`eke-io`) and waits until it measures.
    ///
    /// # Errors
    /// It cannot be started, or cannot measure.
    pub fn start(program: &Path, options: SensorOptions) -> Result<Self, Refused> {
        let tried = || format!("measure by {}", program.display());
        let mut command = Command::new(program);
        command.arg("sense").stdin(Stdio::piped()).stdout(Stdio::piped());
        command.args(options.no_bpf.then_some("--no-bpf"));
        match options.attribution {
            Attribution::None => {}
            Attribution::Process => drop(command.args(["--by", "process"])),
            Attribution::Cgroup => drop(command.args(["--by", "cgroup"])),
        }
        let mut child = command.spawn().map_err(|e| Refused::new(tried(), e))?;
        let (requests, windows) = (child.stdin.take(), child.stdout.take());
        let windows = windows.ok_or_else(|| Refused::new(tried(), "it has no standard output"))?;
        let mut remote = Self { child, requests, windows: BufReader::new(windows) };
        // the first window shows that it measures
        remote.window()?;
        Ok(remote)
    }

    /// The number of its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl WindowSource for RemoteSensor {
    fn window(&mut self) -> Result<Window, Refused> {
        let tried = "read from the sensor eke-io";
        let mut line = String::new();
        let requested = self.requests.as_mut().map_or(Ok(()), |requests| requests.write_all(b"\n"));
        match requested.and_then(|()| self.windows.read_line(&mut line)) {
            Ok(0) => Err(Refused::new(tried, "it ended; its messages are above")),
            Ok(_) => serde_json::from_str(&line).map_err(|e| Refused::new(tried, e)),
            Err(e) => Err(Refused::new(tried, e)),
        }
    }
}

impl Drop for RemoteSensor {
    fn drop(&mut self) {
        self.requests = None;
        // the end of its input ends it; after a second it is killed
        for _ in 0..100 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! A sensor in a process of its own, `eke-io sense`: for each line on its standard input it writes a window as a line of JSON. It ends
//! when its input does, so nothing stays of it, however its owner ends.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::local::Wanted;
use super::{By, Refused, Windows};
use crate::figures::Window;

/// The process.
#[derive(Debug)]
pub struct Remote {
    child: Child,
    /// `None` once it is told to end.
    ask: Option<ChildStdin>,
    told: BufReader<ChildStdout>,
}

impl Remote {
    /// Starts `program` (`eke-io`) and waits until it measures.
    ///
    /// # Errors
    /// It cannot be started, or cannot measure.
    pub fn start(program: &Path, wanted: Wanted) -> Result<Self, Refused> {
        let tried = || format!("measure by {}", program.display());
        let mut command = Command::new(program);
        command.arg("sense").stdin(Stdio::piped()).stdout(Stdio::piped());
        command.args(wanted.no_bpf.then_some("--no-bpf"));
        match wanted.by {
            By::Nobody => {}
            By::Process => drop(command.args(["--by", "process"])),
            By::Cgroup => drop(command.args(["--by", "cgroup"])),
        }
        let mut child = command.spawn().map_err(|e| Refused::new(tried(), e))?;
        let (ask, told) = (child.stdin.take(), child.stdout.take());
        let told = told.ok_or_else(|| Refused::new(tried(), "it has no standard output"))?;
        let mut remote = Self { child, ask, told: BufReader::new(told) };
        // the first line says that it has begun
        remote.window()?;
        Ok(remote)
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Windows for Remote {
    fn window(&mut self) -> Result<Window, Refused> {
        let tried = "hear from the sensor eke-io";
        let mut line = String::new();
        let asked = self.ask.as_mut().map_or(Ok(()), |ask| ask.write_all(b"\n"));
        let told = asked.and_then(|()| self.told.read_line(&mut line));
        match told {
            Ok(0) => Err(Refused::new(tried, "it ended; what it said is above")),
            Ok(_) => serde_json::from_str(&line).map_err(|e| Refused::new(tried, e)),
            Err(e) => Err(Refused::new(tried, e)),
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.ask = None;
        // its input ended, so it does; it is not waited for without end
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

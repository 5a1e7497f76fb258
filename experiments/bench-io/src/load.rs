//! The processes that write.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::{os::unix::process::CommandExt, time::Duration};

use rustix::process::{Pid, Signal, kill_process_group};

use super::Error;
use super::plan::Writer;

/// A process that writes until it is dropped. It is also killed when this process dies (`setpriv --pdeathsig`).
#[derive(Debug)]
pub struct Load(Child);

/// `$1` is the source, `$2` the target directory. Files are overwritten again and again, so the disk never gets full.
const STREAM: &str = r#"while :; do dd if="$1" of="$2/written-$((i = (i + 1) % 6))" bs=1M conv=notrunc 2>/dev/null || exit; done"#;
const FSYNC: &str =
    r#"while :; do dd if="$1" of="$2/written" bs=16k oflag=dsync conv=notrunc 2>/dev/null || exit; done"#;

impl Load {
    /// Starts the writer, with `idle` in the idle I/O class.
    ///
    /// # Errors
    /// A program is missing.
    pub fn start(writer: Writer, from: &Path, to: &Path, idle: bool) -> Result<Self, Error> {
        let script = if writer == Writer::Fsync { FSYNC } else { STREAM };
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]);
        command.args(idle.then_some(["ionice", "-c", "3"]).into_iter().flatten());
        command.args(["sh", "-c", script, "writer"]).arg(from).arg(to);
        let child = command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        child.map(Self).map_err(|e| Error::Program { program: "setpriv".to_owned(), why: e.to_string() })
    }

    /// Checks that the writer still runs.
    ///
    /// # Errors
    /// The writer has ended.
    pub fn check(&mut self) -> Result<(), Error> {
        match self.0.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => {
                Err(Error::Program { program: "the writer".to_owned(), why: format!("ended ({status})") })
            }
            Err(e) => Err(Error::Program { program: "the writer".to_owned(), why: e.to_string() }),
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let group = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        let Some(group) = group else { return };
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.0.wait();
        // A `dd` that waits for the disk is still in the group.
        for _ in 0..1_500 {
            if kill_process_group(group, Signal::KILL).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

//! eke's mount over the content, made and asked by its own command as a user does.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use eke_apply::state::make_dir;
use eke_bench_core::fault::on;
use eke_bench_core::stage::{Scratch, mount_point};
use eke_linux::Root;
use rustix::mount::{UnmountFlags, unmount};
use serde_json::Value;

use super::error::{Error, Result};
use super::room::Room;

/// How long a command of eke's may take.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(10);

/// What the store holds and did, as `eke cache status --json` says.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Store {
    /// Memory, with what waits to be packed.
    pub held: u64,
    /// What that is in files.
    pub raw: u64,
    /// Blocks asked for that it had.
    pub hits: u64,
    /// And had not.
    pub misses: u64,
    /// Blocks that did not come in since the queue was full.
    pub overrun: u64,
}

/// A mount. It is taken out of sight when it is dropped; its processes are the box's.
#[derive(Debug)]
pub struct Mount {
    place: Scratch,
    program: PathBuf,
}

impl Mount {
    /// Mounts a compressed cache over `below`, in the box: `share` percent of it are for the store.
    ///
    /// # Errors
    /// What the command says.
    pub fn set(
        root: &Root,
        room: &mut Room,
        program: &Path,
        below: &Path,
        share: u8,
        compress: &str,
    ) -> Result<Self> {
        let place = Scratch::in_run(root)?;
        let dir = mount_point(place.path());
        make_dir(root, &dir, 0o755).map_err(on("make", &dir))?;
        let mount = Self { place, program: program.to_owned() };
        let mut command = Command::new(program);
        command.args(["cache", "mount"]).arg(below).arg(&dir);
        command.arg(format!("--memory={share}%")).arg(format!("--compress={compress}"));
        room.run(&command, PATIENCE)?;
        Ok(mount)
    }

    /// Where the content is.
    pub fn dir(&self) -> PathBuf {
        mount_point(self.place.path())
    }

    /// What the store does now; `None` where it does not answer.
    pub fn store(&self) -> Option<Store> {
        let mut command = Command::new(&self.program);
        command.args(["cache", "status"]).arg(self.dir()).arg("--json");
        let output = said(&mut command).ok().filter(|output| output.status.success())?;
        store(&serde_json::from_slice(&output.stdout).ok()?)
    }

    /// Ends it as a user does.
    ///
    /// # Errors
    /// What the command says; it is out of sight all the same.
    pub fn strike(self) -> Result<()> {
        let mut command = Command::new(&self.program);
        command.args(["cache", "umount"]).arg(self.dir());
        let output = said(&mut command)?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(Error::Cache {
            command: line(&command),
            answer: format!("failed ({}): {}", output.status, said.trim()),
        })
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = unmount(self.dir(), UnmountFlags::DETACH);
    }
}

/// Runs it to its end, with patience: who asks a dead mount may wait for ever. What it says is little, so pipes do.
fn said(command: &mut Command) -> Result<Output> {
    let name = line(command);
    let failed = |answer: String| Error::Cache { command: name.clone(), answer };
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| failed(format!("cannot be run: {e}")))?;
    let until = Instant::now() + PATIENCE;
    while child.try_wait().is_ok_and(|ended| ended.is_none()) {
        if Instant::now() > until {
            let _ = child.kill();
            return Err(failed(format!("gives no answer for {} s", PATIENCE.as_secs())));
        }
        std::thread::sleep(PAUSE);
    }
    child.wait_with_output().map_err(|e| failed(format!("cannot be run: {e}")))
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Of the only mount that was asked for.
fn store(status: &Value) -> Option<Store> {
    let store = status.pointer("/caches/0/details/worker/store")?;
    let figure = |name: &str| store.get(name).and_then(Value::as_u64);
    Some(Store {
        held: figure("held")? + figure("queued").unwrap_or(0),
        raw: figure("raw").unwrap_or(0),
        hits: figure("hits").unwrap_or(0),
        misses: figure("misses").unwrap_or(0),
        overrun: figure("overrun").unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_or_there_is_none() {
        let text = r#"{"caches":[{"place":"/x","details":{"worker":{"store":{"held":5,"queued":2,"raw":9,"hits":3}}}}]}"#;
        let expected = Store { held: 7, raw: 9, hits: 3, ..Store::default() };
        assert_eq!(store(&serde_json::from_str(text).unwrap()), Some(expected));
        for text in [r#"{"caches":[{"details":{"worker":null}}]}"#, r#"{"caches":[]}"#, "[]", "3"] {
            assert_eq!(store(&serde_json::from_str(text).unwrap()), None, "{text}");
        }
    }
}

//! eke's mount over a directory, controlled by its own command as a user does.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use eke_apply::state::make_dir;
use eke_bench_core::fault::{self, on};
use eke_bench_core::settings;
use eke_bench_core::test_image::{Scratch, mount_point};
use eke_cache_mounts::status::Status;
use eke_cache_mounts::{mounts, unmount};
use eke_linux::Root;
use serde::Deserialize;
use serde_json::Value;

use super::error::Result;
use super::server_box::ServerBox;

/// How long a command may take.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(10);

/// The store of a mount.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StoreCounters {
    /// Its memory in bytes, with queued blocks.
    pub memory: u64,
    /// The uncompressed bytes of its blocks.
    pub raw: u64,
}

/// A mount. Drop detaches it; its processes belong to the box.
#[derive(Debug)]
pub struct EkeMount {
    /// Where it is mounted if that is not the backing directory.
    _scratch: Option<Scratch>,
    dir: PathBuf,
    program: PathBuf,
}

impl EkeMount {
    /// Mounts a compressed cache of the directory `backing` at a second place, in the box, by `eke`: the command that runs eke's
    /// `program`, where the mount's processes shall be. `options` are those of `eke cache mount`.
    ///
    /// # Errors
    /// The command fails.
    pub fn mount(
        root: &Root,
        server_box: &mut ServerBox,
        eke: (PathBuf, Command),
        backing: &Path,
        options: &[String],
    ) -> Result<Self> {
        let scratch = Scratch::in_run(root)?;
        let dir = mount_point(scratch.path());
        make_dir(root, &dir, 0o755).map_err(on("make", &dir))?;
        Self::at((Some(scratch), dir), server_box, eke, backing, options)
    }

    /// The same over the directory itself, as users have it.
    ///
    /// # Errors
    /// The command fails.
    pub fn over(
        server_box: &mut ServerBox,
        eke: (PathBuf, Command),
        backing: &Path,
        options: &[String],
    ) -> Result<Self> {
        Self::at((None, backing.to_owned()), server_box, eke, backing, options)
    }

    fn at(
        (scratch, dir): (Option<Scratch>, PathBuf),
        server_box: &mut ServerBox,
        (program, mut eke): (PathBuf, Command),
        backing: &Path,
        options: &[String],
    ) -> Result<Self> {
        let mount = Self { _scratch: scratch, dir, program };
        let given = if options.is_empty() { "its defaults".to_owned() } else { options.join(" ") };
        settings::note("eke cache mount --no-remember", &given);
        // Each run begins without what an earlier one left.
        eke.args(["cache", "mount", "--no-remember"]).args(options).arg(backing).arg(&mount.dir);
        server_box.run(&eke, PATIENCE)?;
        Ok(mount)
    }

    /// The content's directory.
    pub fn dir(&self) -> PathBuf {
        self.dir.clone()
    }

    /// True while it stands aside.
    pub fn is_aside(&self) -> bool {
        let mounts = mounts::read().unwrap_or_default();
        mounts::at(&mounts, &self.dir).is_some_and(|mount| mount.aside.is_some())
    }

    /// The store's counters; `None` if the mount does not answer.
    pub fn store(&self) -> Option<StoreCounters> {
        store(self.status()?)
    }

    /// The answer of `eke cache status`; `None` if the mount does not answer.
    pub fn status(&self) -> Option<Value> {
        let mut command = Command::new(&self.program);
        command.args(["cache", "status"]).arg(self.dir()).arg("--json");
        let output = output(&mut command).ok().filter(|output| output.status.success())?;
        serde_json::from_slice(&output.stdout).ok()
    }

    /// Unmounts as a user does.
    ///
    /// # Errors
    /// The command fails. The mount is detached all the same.
    pub fn teardown(self) -> Result<()> {
        let mut command = Command::new(&self.program);
        command.args(["cache", "umount"]).arg(self.dir());
        let output = output(&mut command)?;
        if output.status.success() {
            return Ok(());
        }
        Err(fault::Command::ended(&command, &output).into())
    }
}

impl Drop for EkeMount {
    fn drop(&mut self) {
        let mounts = mounts::read().unwrap_or_default();
        let _ = mounts::at(&mounts, &self.dir).map(|mount| unmount(mount, true));
    }
}

/// Runs a command to its end, with a time limit: a dead mount may block it for ever. Its output is short enough for a pipe.
fn output(command: &mut Command) -> Result<Output, fault::Command> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let spawned = command.spawn();
    let failed = |why: String| fault::Command::new(command, why);
    let mut child = spawned.map_err(|e| failed(format!("cannot be run: {e}")))?;
    let until = Instant::now() + PATIENCE;
    while child.try_wait().is_ok_and(|ended| ended.is_none()) {
        if Instant::now() > until {
            let _ = child.kill();
            return Err(failed(format!("did not end within {} s", PATIENCE.as_secs())));
        }
        std::thread::sleep(PAUSE);
    }
    child.wait_with_output().map_err(|e| failed(format!("cannot be run: {e}")))
}

/// What `eke cache status --json` prints, as far as it is read here.
#[derive(Deserialize)]
struct Caches {
    caches: Vec<Cache>,
}

#[derive(Deserialize)]
struct Cache {
    details: Option<Status>,
}

/// The store of the status's only mount.
fn store(status: Value) -> Option<StoreCounters> {
    let Caches { caches } = serde_json::from_value(status).ok()?;
    let store = caches.into_iter().next()?.details?.worker?.store;
    Some(StoreCounters { memory: store.held.0 + store.queued.0, raw: store.raw.0 })
}

#[cfg(test)]
mod tests {
    use eke_cache_mounts::status::{StoreStats, WorkerStats};
    use eke_model::units::Bytes;

    use super::*;

    fn printed(worker: Option<WorkerStats>) -> Value {
        let settings = r#"{"dir":"/y","place":"/x","memory":{"bytes":1},"compress":"sync","others":true,"passthrough":"never","watch":false}"#;
        let details = Status {
            place: "/x".into(),
            dir: "/y".into(),
            uid: 0,
            pid: 1,
            worker_pid: None,
            restarts: 0,
            last_death: None,
            up_s: 1,
            aside: None,
            not_moved: None,
            settings: serde_json::from_str(settings).unwrap(),
            worker,
        };
        serde_json::json!({ "caches": [{ "place": "/x", "details": details }] })
    }

    #[test]
    fn counters_are_read_if_the_status_has_them() {
        let store_stats =
            StoreStats { held: Bytes(5), queued: Bytes(2), raw: Bytes(9), ..StoreStats::default() };
        let worker = WorkerStats { store: store_stats, ..WorkerStats::default() };
        assert_eq!(store(printed(Some(worker))), Some(StoreCounters { memory: 7, raw: 9 }));
        assert_eq!(store(printed(None)), None);
        for text in [r#"{"caches":[]}"#, "[]", "3"] {
            assert_eq!(store(serde_json::from_str(text).unwrap()), None, "{text}");
        }
    }
}

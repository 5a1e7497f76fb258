//! A mount of eke's cache, made by `eke cache mount` as a user makes it.

use std::path::{Path, PathBuf};
use std::process::Command;

use eke_bench_core::command::output;
use eke_bench_core::{Environment, fault};
use serde_json::Value;

/// The program that mounts eke's cache.
const EKE: &str = "eke";

/// A mount. Drop unmounts it.
#[derive(Debug)]
pub struct CacheMount {
    program: PathBuf,
    place: PathBuf,
    mounted: bool,
}

impl CacheMount {
    /// Serves `dir` at `place`, without what an earlier mount left.
    ///
    /// # Errors
    /// `eke cache mount` failed.
    pub fn new(
        environment: &Environment<'_>,
        dir: &Path,
        place: PathBuf,
        options: &[&str],
    ) -> Result<Self, fault::Command> {
        Self::remembering(environment, dir, place, &[options, &["--no-remember"]].concat())
    }

    /// Serves `dir` at `place`, with the list of what was hot there.
    ///
    /// # Errors
    /// `eke cache mount` failed.
    pub fn remembering(
        environment: &Environment<'_>,
        dir: &Path,
        place: PathBuf,
        options: &[&str],
    ) -> Result<Self, fault::Command> {
        let program = environment.installed(EKE);
        output(Command::new(&program).args(["cache", "mount"]).arg(dir).arg(&place).args(options))?;
        Ok(Self { program, place, mounted: true })
    }

    /// Its mount point.
    pub fn place(&self) -> &Path {
        &self.place
    }

    fn eke(&self, verb: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["cache", verb]);
        command
    }

    /// The details of `eke cache status --json`, if it answers.
    pub fn details(&self) -> Option<Value> {
        let text = output(self.eke("status").arg(&self.place).arg("--json")).ok()?;
        serde_json::from_str::<Value>(&text).ok()?.pointer("/caches/0/details").cloned()
    }

    /// Unmounts as a user does.
    ///
    /// # Errors
    /// `eke cache umount` failed.
    pub fn unmount(mut self) -> Result<(), fault::Command> {
        self.mounted = false;
        output(self.eke("umount").arg(&self.place)).map(drop)
    }
}

impl Drop for CacheMount {
    fn drop(&mut self) {
        if self.mounted {
            let _ = output(self.eke("umount").arg("--lazy").arg(&self.place));
        }
    }
}

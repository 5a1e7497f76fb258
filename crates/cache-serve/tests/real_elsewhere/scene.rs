//! A served directory with a hanging file system inside, and the processes that use it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;

use crate::child::Child;
use crate::common::mount::{Mount, MountSpec, scratch};
use crate::common::pattern;
use crate::hanging::{FILES, Gate, Hanging};
use crate::{OTHER, USER};

/// Bytes of each large file, which is read ahead.
pub const LARGE: usize = 4 << 20;

/// Drop opens the gate first, so that everything can end.
pub struct Scene {
    pub children: Vec<Child>,
    mount: Option<Mount>,
    pub inner: Hanging,
    _scratch: TempDir,
}

impl Scene {
    /// The kernel keeps names for so many seconds. It knows those of the mount point and of all files inside.
    pub fn new(names: u32) -> Self {
        Self::start(names, false)
    }

    /// The same, and changes of the backing directory are watched.
    pub fn watched(names: u32) -> Self {
        Self::start(names, true)
    }

    fn start(names: u32, watch: bool) -> Self {
        let scratch = scratch();
        let backing = scratch.path().join("backing");
        fs::create_dir_all(backing.join("inner")).unwrap();
        for user in [USER, OTHER, 0] {
            fs::write(backing.join(format!("large-{user}")), pattern(user as u8, 0, LARGE)).unwrap();
        }
        let inner = Hanging::new(&backing.join("inner"));
        let spec = MountSpec { backing: Some(&backing), ..MountSpec::default() };
        let mount = Mount::start(&spec, |settings| {
            settings.names_s = names;
            settings.watch = watch;
        });
        let mut scene = Self { children: Vec::new(), mount: Some(mount), inner, _scratch: scratch };
        let place = scene.mount().place().join("inner");
        let names = format!("cd \"$1\" && stat $(seq 0 {}) >/dev/null", FILES - 1);
        scene.runs(&names, &place, USER).unwrap();
        scene
    }

    pub fn mount(&self) -> &Mount {
        self.mount.as_ref().unwrap()
    }

    pub fn gate(&self) -> Arc<Gate> {
        Arc::clone(&self.inner.gate)
    }

    /// How many of the processes have ended.
    pub fn ended(&mut self) -> usize {
        self.children.iter_mut().filter_map(Child::exit_status).count()
    }

    /// Runs a script, and waits for its end. Its output, or its errors.
    pub fn runs(&mut self, script: &str, path: &Path, user: u32) -> Result<String, String> {
        // While it may wait, it is one of those that end with the scene.
        self.children.push(Child::shell(script, path, user));
        let ended = || self.children.last_mut()?.exit_status();
        eke_testkit::wait::wait_for(&format!("the end of {script}"), ended);
        self.children.pop().unwrap().output()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.inner.gate.open();
        self.children.clear();
        drop(self.mount.take());
    }
}

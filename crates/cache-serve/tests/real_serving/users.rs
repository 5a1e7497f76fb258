//! Other users on a mount of root's. Real kernel, real program.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Stdio};

use eke_testkit::real::{lacking, no_program, skip};

use crate::common::NEEDS;
use crate::common::mount::{InMemory, Mount, scratch};

/// Runs a script as a user. Returns whether it succeeds.
fn as_user(id: u32, script: &str, dir: &Path) -> bool {
    let id = id.to_string();
    let mut setpriv = Command::new("setpriv");
    setpriv.args(["--reuid", &id, "--regid", &id, "--clear-groups", "sh", "-c", script]);
    setpriv.current_dir(dir).stderr(Stdio::null()).status().unwrap().success()
}

#[test]
fn permissions_hold_on_a_file_system_without_acls() {
    let test = "permissions_hold_on_a_file_system_without_acls";
    let why = lacking(&NEEDS).or_else(|| no_program(&["mount", "setpriv"]));
    if let Some(why) = why {
        return skip(test, &why);
    }
    let scratch = scratch();
    let InMemory(disk) = &InMemory::of("ramfs", scratch.path(), "");
    fs::set_permissions(disk, Permissions::from_mode(0o755)).unwrap();
    for (name, owner, mode) in [("shared", 0, 0o644), ("own", 12_345, 0o600), ("others", 12_346, 0o640)] {
        fs::write(disk.join(name), name).unwrap();
        chown(disk.join(name), Some(owner), Some(owner)).unwrap();
        fs::set_permissions(disk.join(name), Permissions::from_mode(mode)).unwrap();
    }
    let mount = Mount::of(disk);
    for dir in [mount.backing(), mount.place()] {
        assert!(as_user(12_345, "ls && cat shared own && echo more >> own", dir), "{}", dir.display());
        assert!(!as_user(12_345, "cat others", dir), "{}", dir.display());
        assert!(!as_user(12_345, "echo more >> shared", dir), "{}", dir.display());
    }
}

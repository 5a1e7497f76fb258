//! The whole machine for one test of an experiment.

use eke_linux::cgroup::name;
use eke_testkit::real::{MachineLock, disks, lock_machine};

use super::eke;

/// Locks the machine. At the end of the test, everything that `traces` lists must be as before, also after a failure.
pub struct Clean {
    pub before: String,
    traces: fn() -> String,
    _machine: MachineLock,
}

impl Clean {
    pub fn start(traces: fn() -> String) -> Self {
        let _machine = lock_machine();
        assert_eq!(eke(&["down"]).status, Some(0));
        Self { before: traces(), traces, _machine }
    }

    pub fn is_as_before(&self) {
        assert_eq!((self.traces)(), self.before);
    }
}

impl Drop for Clean {
    fn drop(&mut self) {
        eke(&["down"]);
    }
}

/// What every experiment makes for a while: mounts, disks, directories, groups.
pub fn disks_and_groups() -> String {
    let groups = ["", "/memory", "/eke", "/memory/eke"].into_iter().flat_map(|dir| {
        let names = std::fs::read_dir(format!("/sys/fs/cgroup{dir}")).into_iter().flatten().flatten();
        names.map(|e| e.file_name().to_string_lossy().into_owned())
    });
    let groups: Vec<String> = groups.filter(|n| name::owner(n).is_some()).collect();
    format!("{}\n{}", disks().join("\n"), groups.join("\n"))
}

//! A mount that stands aside returns when memory is short.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use eke_apply::cgroup::{Group, GroupParent};
use eke_cache_mounts::status::{RefusalKind, Response};
use eke_linux::Root;
use eke_model::units::Bytes;
use eke_testkit::real::{lacking, lock_machine, skip};
use eke_testkit::wait::wait_for;

use crate::aside::{
    Propagating, STRICT, WINDOW, directory, drop_pages, in_namespace, is_covered, is_read_only_in, read_all,
    read_until, serve,
};
use crate::common::NEEDS;
use crate::common::mount::InMemory;
use crate::served::{Served, alone};
use crate::writers::Holder;

/// Reads more than its group may have, again and again. Drop ends it, and the group.
struct Thrashing(Child, Option<Group>);

impl Thrashing {
    fn start(dir: &Path) -> Result<Self, String> {
        let parent = GroupParent::find(&Root::host()).map_err(|e| e.to_string())?;
        let group = Group::make(&Root::host(), &parent, "aside").map_err(|e| e.to_string())?;
        group.limit(Bytes::mib(24)).unwrap();
        for name in ["a", "b", "c", "d"] {
            let large = dir.join(name);
            fs::write(&large, vec![7; 48 << 20]).unwrap();
            // Not in the memory of this process's group.
            drop_pages(&large);
        }
        let script = "read go; for file in a b c d; do while :; do cat $file >/dev/null; done & done; wait";
        let child = Command::new("sh").args(["-c", script]).current_dir(dir).stdin(Stdio::piped()).spawn();
        let mut child = child.unwrap();
        group.admit(child.id()).unwrap();
        drop(child.stdin.take());
        Ok(Self(child, Some(group)))
    }
}

impl Drop for Thrashing {
    fn drop(&mut self) {
        let group = self.1.take().unwrap();
        group.kill().unwrap();
        let _ = self.0.wait();
        group.remove().unwrap();
    }
}

/// Waits until it would return, but for this reason.
fn would_return(served: &Served, why: &str) {
    wait_for(why, || served.status().not_moved.is_some_and(|text| text.contains(why)));
    assert!(!is_covered(&served.place()), "{why}");
}

#[test]
fn it_returns_when_memory_is_short_over_its_own_directory_if_nobody_writes_there() {
    const NAME: &str = "it_returns_when_memory_is_short_over_its_own_directory_if_nobody_writes_there";
    let Some(_alone) = alone(NAME, lacking(&NEEDS)) else { return };
    let _machine = lock_machine();
    let (dir, data) = directory();
    let _propagating = Propagating::new(dir.path());
    let strict = in_namespace("slave", STRICT, &data);
    let served = serve(&data);
    read_until(&data, "it leaves", || served.status().aside.is_some());
    let writer = Holder::new("exec 3>>\"$DIR/7\"", &data);
    let thrashing = match Thrashing::start(dir.path()) {
        Ok(thrashing) => thrashing,
        Err(why) => return skip(NAME, &why),
    };
    would_return(&served, "open for writing");
    drop(writer);
    // Nothing propagates to it, so the mount would not cover the directory there.
    let elsewhere = in_namespace("private", "true", &data);
    would_return(&served, "does not change as this one does");
    drop(elsewhere);
    wait_for("it returns", || served.status().aside.is_none());
    assert!(is_covered(&data) && is_read_only_in(strict.0.id(), &data));
    drop(strict);
    let small = served.server.worker();
    read_all(&data);
    wait_for("a worker with all that serving needs", || {
        served.server.worker_now().is_some_and(|pid| pid != small)
    });
    read_all(&data);
    let open = File::open(data.join("7")).unwrap();
    let Response::Refused(refusal) = served.umount() else { panic!("it was unmounted with an open file") };
    assert!(refusal.kind == RefusalKind::Busy && !refusal.what.contains("before"), "{refusal}");
    drop(open);
    read_until(&data, "it leaves again", || !is_covered(&data));
    assert_eq!(served.umount(), Response::Done);
    // After a return in vain it would stay away from a machine with so much unused memory.
    let served = serve(&data);
    read_until(&data, "it leaves", || !is_covered(&data));
    // Whoever owns a part of the path could have another directory covered.
    let away = dir.path().join("away");
    fs::rename(&data, &away).unwrap();
    fs::create_dir(&data).unwrap();
    would_return(&served, "another directory");
    assert!(!is_covered(&away));
    drop(thrashing);
    assert_eq!(served.umount(), Response::Done);
}

#[test]
fn it_knows_what_is_mounted_on_it_after_its_return() {
    const NAME: &str = "it_knows_what_is_mounted_on_it_after_its_return";
    let Some(_alone) = alone(NAME, lacking(&NEEDS)) else { return };
    let _machine = lock_machine();
    let (dir, data) = directory();
    let [inside, elsewhere] = ["data/inside", "elsewhere"].map(|name| dir.path().join(name));
    for place in [&inside, &elsewhere] {
        fs::create_dir(place).unwrap();
    }
    // The worker stays.
    let args = ["--window", WINDOW, "--no-resend"];
    let served = Served::with(&data, &data, &args, |settings| settings.keep_mounted = false).unwrap();
    let worker = served.server.worker();
    read_until(&data, "it leaves", || served.status().aside.is_some());
    // The kernel gives the number that became free to the next mount.
    let _elsewhere = InMemory::of("tmpfs", &elsewhere, "size=1m");
    let thrashing = match Thrashing::start(dir.path()) {
        Ok(thrashing) => thrashing,
        Err(why) => return skip(NAME, &why),
    };
    wait_for("it returns", || served.status().aside.is_none());
    drop(thrashing);
    let _inside = InMemory::of("tmpfs", &inside, "nosuid");
    let stats = served.stats();
    assert!(stats.not_served.is_empty(), "{:?}", stats.not_served);
    assert_eq!(served.server.worker(), worker);
}

//! Is the mount a directory like any other? Several users do the same random operations on a mount and on a plain directory, some of
//! them past the mount. After each one errors, bytes, modes, owners and listings must be the same.
//!
//! - [`op`]: an operation as data; [`display`]: its text
//! - [`choose`]: proptest's strategies for operations
//! - [`user`]: users, each a thread with its own credentials
//! - [`perform`]: the system calls
//! - [`allowed`]: intended differences
//! - [`case`]: steps and comparisons
//! - [`run`]: number of cases, seeds, duration; cases that failed once are in `regressions.jsonl`

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "test code")]

mod allowed;
mod case;
mod choose;
#[path = "../common/mod.rs"]
mod common;
mod display;
mod op;
mod perform;
mod run;
mod user;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use eke_cache_mounts::settings::{Compress, Memory, PassthroughMode};
use eke_model::units::Bytes;
use eke_testkit::real::{lacking, skip};
use rustix::fs::{XattrFlags, getxattr, setxattr};

use choose::BackingOps;
use common::NEEDS;
use common::mount::{InMemory, Mount, MountSpec, scratch};
use run::{Variant, run};

/// Arguments of a mount whose names and attributes the kernel does not cache.
const NO_TTL: MountSpec<'_> =
    MountSpec { backing: None, over_itself: false, args: &["--no-ttl"], limits: &[], fill: None };

#[test]
fn as_a_plain_directory() {
    let name = "as_a_plain_directory";
    if let Some(why) = lacking(&NEEDS) {
        return skip(name, &why);
    }
    let mount = Mount::with(|settings| {
        settings.compress = Compress::Async;
        settings.watch = true;
        settings.passthrough = PassthroughMode::Auto;
    });
    let plain = mount.beside("plain");
    run(&Variant { passthrough: true, cases: 24, ..Variant::new(name, &mount, &plain, BackingOps::Content) });
}

#[test]
fn as_a_plain_directory_whose_backing_directory_changes() {
    let name = "as_a_plain_directory_whose_backing_directory_changes";
    if let Some(why) = lacking(&NEEDS) {
        return skip(name, &why);
    }
    let mount = Mount::start(&NO_TTL, |_| {});
    let plain = mount.beside("plain");
    run(&Variant { cases: 24, ..Variant::new(name, &mount, &plain, BackingOps::All) });
}

#[test]
fn as_a_plain_directory_with_passthrough() {
    let name = "as_a_plain_directory_with_passthrough";
    if let Some(why) = lacking(&NEEDS) {
        return skip(name, &why);
    }
    let mount = Mount::start(&NO_TTL, |settings| settings.passthrough = PassthroughMode::Always);
    let plain = mount.beside("plain");
    run(&Variant { passthrough: true, ..Variant::new(name, &mount, &plain, BackingOps::All) });
}

/// On tmpfs, which has other limits. It gives a directory the time of the file that left it; another change may have the same time.
#[test]
fn as_a_plain_directory_in_memory() {
    let name = "as_a_plain_directory_in_memory";
    if let Some(why) = lacking(&NEEDS) {
        return skip(name, &why);
    }
    let dir = scratch();
    let memory = InMemory::new(dir.path(), 400_000);
    let [backing, plain] = ["backing", "plain"].map(|name| memory.0.join(name));
    for dir in [&backing, &plain] {
        std::fs::create_dir(dir).unwrap();
    }
    let mount = Mount::start(&MountSpec { backing: Some(&backing), ..NO_TTL }, |_| {});
    run(&Variant { fine_times: false, ..Variant::new(name, &mount, &plain, BackingOps::All) });
}

/// A quarter of them are for paths: fewer than the files that are used meanwhile, and little more than the fewest (64).
const FEW: &str = "--nofile=320:320";

#[test]
fn as_a_plain_directory_with_few_descriptors() {
    let name = "as_a_plain_directory_with_few_descriptors";
    if let Some(why) = lacking(&NEEDS) {
        return skip(name, &why);
    }
    let spec = MountSpec { limits: &[FEW], args: &["--no-ttl", "--keep-limits"], ..NO_TTL };
    let mount = Mount::start(&spec, |settings| settings.memory = Memory::Bytes(Bytes::mib(4)));
    let others = Others::fill(&mount);
    let plain = mount.beside("plain");
    beside(|| others.use_one(), || run(&Variant::new(name, &mount, &plain, BackingOps::All)));
}

#[test]
fn as_a_plain_directory_while_workers_are_killed() {
    let name = "as_a_plain_directory_while_workers_are_killed";
    if let Some(why) = lacking(&NEEDS) {
        return skip(name, &why);
    }
    let mount = Mount::with(|_| {});
    let plain = mount.beside("plain");
    let kill = || {
        std::thread::sleep(Duration::from_millis(120));
        mount.kill_worker();
    };
    let variant = Variant { cases: 12, ..Variant::new(name, &mount, &plain, BackingOps::ContentWithDeaths) };
    beside(kill, || run(&variant));
}

/// Repeats one thing while another is done.
fn beside(again: impl Fn() + Sync, act: impl FnOnce()) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                again();
            }
        });
        let acted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
        over.store(true, Ordering::Relaxed);
        other.join().unwrap();
        acted.unwrap();
    });
}

/// More files than descriptors: each use of a file closes another's descriptor.
struct Others<'a> {
    mount: &'a Mount,
    next: AtomicU64,
}

impl<'a> Others<'a> {
    const FILES: u64 = 300;

    fn fill(mount: &'a Mount) -> Self {
        std::fs::create_dir(mount.backing().join("others")).unwrap();
        for n in 0..Self::FILES {
            let path = mount.backing().join(format!("others/{n}"));
            std::fs::write(&path, n.to_string()).unwrap();
            setxattr(&path, "user.number", n.to_string().as_bytes(), XattrFlags::empty()).unwrap();
        }
        Self { mount, next: AtomicU64::new(0) }
    }

    fn use_one(&self) {
        let n = self.next.fetch_add(1, Ordering::Relaxed) * 7 % Self::FILES;
        let path = self.mount.place().join(format!("others/{n}"));
        let mut value = [0; 16];
        let len = getxattr(&path, "user.number", &mut value[..]).unwrap();
        assert_eq!(String::from_utf8_lossy(&value[..len]), n.to_string(), "another file's attribute");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), n.to_string(), "another file's content");
        std::thread::sleep(Duration::from_millis(1));
    }
}

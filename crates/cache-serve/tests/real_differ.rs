//! Is the mount a directory like any other? The same random operations on it and on a plain one: see `differ/mod.rs`.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "test code")]

mod differ;
mod model;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use differ::choose::Below;
use differ::run::{Variant, run};
use eke_cache_mounts::settings::{Compress, Memory, PassthroughMode};
use eke_model::units::Bytes;
use eke_testkit::real::{lacking, skip};
use model::mount::{InMemory, Mount, NEEDS, scratch};
use rustix::fs::{XattrFlags, getxattr, setxattr};

/// For a mount that the kernel asks each time.
const ASKED: [&str; 1] = ["--no-ttl"];

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
    run(&Variant {
        name,
        mount: &mount,
        plain: &mount.beside("plain"),
        backing: Below::Content,
        passthrough: true,
        fine_times: true,
        cases: 24,
    });
}

#[test]
fn as_a_plain_directory_that_others_change_below() {
    let name = "as_a_plain_directory_that_others_change_below";
    if let Some(why) = lacking(&NEEDS) {
        return skip(name, &why);
    }
    let mount = Mount::with_words(&ASKED, None, |_| {});
    run(&Variant {
        name,
        mount: &mount,
        plain: &mount.beside("plain"),
        backing: Below::All,
        passthrough: false,
        fine_times: true,
        cases: 24,
    });
}

#[test]
fn as_a_plain_directory_where_the_kernel_reads_below() {
    let name = "as_a_plain_directory_where_the_kernel_reads_below";
    if let Some(why) = lacking(&NEEDS) {
        return skip(name, &why);
    }
    let mount = Mount::with_words(&ASKED, None, |settings| settings.passthrough = PassthroughMode::Always);
    run(&Variant {
        name,
        mount: &mount,
        plain: &mount.beside("plain"),
        backing: Below::All,
        passthrough: true,
        fine_times: true,
        cases: 16,
    });
}

/// A file system without a disk, with other limits. It gives a directory the time of what left it, which another change may
/// have, too.
#[test]
fn as_a_plain_directory_in_memory() {
    let name = "as_a_plain_directory_in_memory";
    if let Some(why) = lacking(&NEEDS) {
        return skip(name, &why);
    }
    let dir = scratch();
    let memory = InMemory::new(dir.path(), 400_000);
    let [backing, plain] = ["below", "plain"].map(|name| memory.0.join(name));
    for dir in [&backing, &plain] {
        std::fs::create_dir(dir).unwrap();
    }
    let mount = Mount::of_with_words(&backing, &ASKED);
    run(&Variant {
        name,
        mount: &mount,
        plain: &plain,
        backing: Below::All,
        passthrough: false,
        fine_times: false,
        cases: 16,
    });
}

/// So many that there is room for the fewest paths, and little more.
const FEW: u64 = 200;

#[test]
fn as_a_plain_directory_with_few_descriptors() {
    let name = "as_a_plain_directory_with_few_descriptors";
    if let Some(why) = lacking(&NEEDS) {
        return skip(name, &why);
    }
    let mount =
        Mount::with_words(&ASKED, Some(FEW), |settings| settings.memory = Memory::Bytes(Bytes::mib(4)));
    let others = Others::fill(&mount);
    beside(
        || others.use_one(),
        || {
            run(&Variant {
                name,
                mount: &mount,
                plain: &mount.beside("plain"),
                backing: Below::All,
                passthrough: false,
                fine_times: true,
                cases: 16,
            })
        },
    );
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
    let may = Below::ContentWithDeaths;
    beside(kill, || {
        run(&Variant {
            name,
            mount: &mount,
            plain: &plain,
            backing: may,
            passthrough: false,
            fine_times: true,
            cases: 12,
        })
    });
}

/// Does one thing again and again while another is done.
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

/// More files than there are descriptors for: each use of one takes another's away.
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

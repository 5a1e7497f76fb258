//! Is the mount a directory like any other? The same random operations on it and on a plain one: see `differ/mod.rs`.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "test code")]

mod differ;
mod model;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use differ::choose::Below;
use differ::run::{Variant, run};
use eke_mount::settings::{Compress, Straight};
use eke_testkit::real::{lacking, skip};
use model::mount::{Mount, NEEDS};

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
        settings.straight = Straight::Auto;
    });
    run(&Variant { name, mount: &mount, below: Below::Content, set_id: true, cases: 12 });
}

#[test]
fn as_a_plain_directory_that_others_change_below() {
    let name = "as_a_plain_directory_that_others_change_below";
    if let Some(why) = lacking(&NEEDS) {
        return skip(name, &why);
    }
    let mount = Mount::with_words(&ASKED, None, |_| {});
    run(&Variant { name, mount: &mount, below: Below::All, set_id: true, cases: 12 });
}

#[test]
fn as_a_plain_directory_where_the_kernel_reads_below() {
    let name = "as_a_plain_directory_where_the_kernel_reads_below";
    if let Some(why) = lacking(&NEEDS) {
        return skip(name, &why);
    }
    let mount = Mount::with_words(&ASKED, None, |settings| settings.straight = Straight::Always);
    run(&Variant { name, mount: &mount, below: Below::All, set_id: false, cases: 8 });
}

/// So many that there is room for the fewest paths, and little more.
const FEW: u64 = 200;

#[test]
fn as_a_plain_directory_with_few_descriptors() {
    let name = "as_a_plain_directory_with_few_descriptors";
    if let Some(why) = lacking(&NEEDS) {
        return skip(name, &why);
    }
    let mount = Mount::with_words(&ASKED, Some(FEW), |_| {});
    run(&Variant { name, mount: &mount, below: Below::All, set_id: true, cases: 8 });
}

#[test]
fn as_a_plain_directory_while_workers_are_killed() {
    let name = "as_a_plain_directory_while_workers_are_killed";
    if let Some(why) = lacking(&NEEDS) {
        return skip(name, &why);
    }
    let (mount, over) = (Mount::with(|_| {}), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(120));
                mount.kill_worker();
            }
        });
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            run(&Variant { name, mount: &mount, below: Below::ContentWithDeaths, set_id: true, cases: 12 });
        }));
        over.store(true, Ordering::Relaxed);
        ended.unwrap();
    });
}

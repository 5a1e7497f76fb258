//! More changes than the kernel's queue holds: what others changed is seen, and what they did not stays in memory. Real kernel, real
//! program.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

use eke_testkit::real::{lacking, skip};
use eke_testkit::wait::wait_for;

use crate::common::mount::Mount;
use crate::common::server::Stopped;
use crate::common::{NEEDS, pattern};
use crate::memory::stats;

const LEN: usize = 1 << 20;

/// Creates so many files as another program does.
fn create(dir: &std::path::Path, files: u32) {
    let mut touch = Command::new("xargs");
    let mut touch = touch.arg("touch").current_dir(dir).stdin(Stdio::piped()).spawn().unwrap();
    let names: String = (0..files).map(|n| format!("{n}\n")).collect();
    touch.stdin.take().unwrap().write_all(names.as_bytes()).unwrap();
    assert!(touch.wait().unwrap().success());
}

#[test]
fn lost_reports_cost_no_blocks_of_files_that_did_not_change() {
    let test = "lost_reports_cost_no_blocks_of_files_that_did_not_change";
    if let Some(why) = lacking(&NEEDS).or_else(|| lacking(&["/proc/sys/fs/fanotify/max_queued_events"])) {
        return skip(test, &why);
    }
    let most = fs::read_to_string("/proc/sys/fs/fanotify/max_queued_events").unwrap();
    let most: u32 = most.trim().parse().unwrap();
    if most > 100_000 {
        return skip(test, "the queue is longer than a test should fill");
    }
    let mount = Mount::with(|settings| settings.watch = true);
    let names = ["same", "changed"];
    names.iter().for_each(|name| fs::write(mount.backing().join(name), pattern(1, 0, LEN)).unwrap());
    let flood = mount.backing().join("flood");
    fs::create_dir(&flood).unwrap();
    // Later than the last tick of the file system's clock, so that both files can stay.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let [same, changed] = names.map(|name| File::open(mount.place().join(name)).unwrap());
    let read = |file: &File| {
        let mut bytes = vec![0; LEN];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    };
    assert!(read(&same) == pattern(1, 0, LEN) && read(&changed) == pattern(1, 0, LEN));
    wait_for("blocks in memory", || {
        stats(&mount).0.store.insertions > 0 && stats(&mount).0.store.queued.0 == 0
    });
    let before = stats(&mount).0;
    if !before.watch.on {
        return skip(test, &before.watch.why.unwrap_or_default());
    }

    let worker = mount.server.worker();
    let stopped = Stopped::new(worker);
    fs::write(mount.backing().join("changed"), pattern(2, 0, LEN)).unwrap();
    create(&flood, most + 100);
    drop(stopped);
    wait_for("the lost reports", || stats(&mount).0.watch.overflows > before.watch.overflows);
    wait_for("the change", || read(&changed) == pattern(2, 0, LEN));
    assert!(read(&same) == pattern(1, 0, LEN));
    let after = stats(&mount).0;
    let half = LEN as u64 / 65_536 / 2;
    assert!(after.store.drops - before.store.drops >= half, "those of the changed file are gone");
    assert!(after.store.drops - before.store.drops <= 3 * half, "those of the other are there");
}

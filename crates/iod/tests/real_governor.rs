//! Settings of real loop devices are restored after `kill -9`, and acknowledged writes survive a power cut.

#[allow(dead_code, reason = "not every test uses all of it")]
mod common;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::time::Instant;

use common::{Direct, Loop, buffered_load, load, missing, name, own_journal, slow_disk, without_bpf};
use eke_apply::journal::{self, Journal};
use eke_apply::{revert, state};
use eke_io::compare::setting::Setting;
use eke_io::knobs::named;
use eke_iod::govern::knob_writer::KnobWriter;
use eke_iod::govern::tunable;
use eke_linux::Root;
use eke_model::snapshot::IoState;
use eke_model::units::Bytes;
use eke_slow_disk::{Image, Profile, SlowDisk, SlowDiskSpec};
use eke_testkit::program::KilledOnDrop;
use eke_testkit::real::{SameDisks, skip};
use eke_testkit::wait::{BOUND, RaiseOnDrop, wait_for};

/// A disk on which a large write delays readers for long.
fn slow() -> Profile {
    Profile { rate: 15_000_000, iops: Some(2_000), ..Profile::plain() }
}

#[expect(clippy::unwrap_used, reason = "test code")]
fn setting(root: &Root, device: &str, file: &str) -> String {
    root.read(format!("sys/block/{device}/queue/{file}")).unwrap().trim().to_owned()
}

/// Checks the report to the agent after a change.
#[expect(clippy::unwrap_used, reason = "test code")]
fn check_reported_latencies(root: &Root) {
    let state: IoState = state::load(root, state::IO).unwrap();
    let of = |name: &str| state.latencies.iter().find(|kind| kind.operation == name).unwrap();
    for name in ["read", "write"] {
        let (all, late) = (of(name).all, of(name).late);
        assert!(all.count >= late.count && late.count > 0 && all.sum_ns > 0, "{name}: {state:?}");
        assert_eq!(all.has_buckets(), state.source == "bpf", "{name}: {state:?}");
    }
    assert!(state.late_ms > 0, "{state:?}");
}

#[test]
fn a_killed_governor_leaves_what_down_restores() {
    if let Some(why) = missing(&["losetup", "dd"]) {
        return skip("a_killed_governor_leaves_what_down_restores", &why);
    }
    let _clean = SameDisks::start();
    let (dir, root) = own_journal();
    let disk = slow_disk(slow(), Bytes::mib(256));
    let device = name(disk.device());
    let before: Vec<String> =
        ["max_sectors_kb", "wbt_lat_usec", "nr_requests"].map(|f| setting(&root, &device, f)).to_vec();
    let mut governor = govern(&["--device", &device], dir.path());
    let done = AtomicBool::new(false);
    let (changed, waits) = std::thread::scope(|scope| {
        let _end = RaiseOnDrop(&done);
        scope.spawn(|| load(disk.device(), &done));
        let changed = first_change(&mut governor);
        let waits = matches!(governor.0.try_wait(), Ok(None));
        // every ten seconds, or never if it ended
        let reported = || state::load::<IoState>(&root, state::IO).is_some_and(|io| io.late_ms > 0);
        if changed.is_some() {
            wait_for("the report", || reported() || !matches!(governor.0.try_wait(), Ok(None)));
        }
        drop(governor);
        (changed, waits)
    });
    assert!(changed.is_some(), "it changed nothing; it still ran: {waits}");
    check_reported_latencies(&root);
    let now: Vec<String> =
        ["max_sectors_kb", "wbt_lat_usec", "nr_requests"].map(|f| setting(&root, &device, f)).to_vec();
    assert_ne!(now, before, "{changed:?}");
    assert_eq!(journal::entries(&root).unwrap().len(), 1);
    // what `eke down` does
    let journal = Journal::open(&root).unwrap();
    let outcomes = revert::all(&root, &journal).unwrap();
    assert!(outcomes.iter().all(|(_, o)| matches!(o, revert::Outcome::Restored(_))), "{outcomes:?}");
    let after: Vec<String> =
        ["max_sectors_kb", "wbt_lat_usec", "nr_requests"].map(|f| setting(&root, &device, f)).to_vec();
    assert_eq!(after, before);
    assert!(journal::entries(&root).unwrap().is_empty());
    disk.detach().unwrap();
}

#[expect(clippy::unwrap_used, reason = "test code")]
fn govern(words: &[&str], root: &Path) -> KilledOnDrop {
    let mut program = Command::new(env!("CARGO_BIN_EXE_eke-io"));
    program.arg("govern").args(words).arg("--root").arg(root);
    KilledOnDrop(program.stdout(Stdio::piped()).spawn().unwrap())
}

/// Its first change as a line, if there is one in time: it need not find anything to change on a machine that does much else.
#[expect(clippy::unwrap_used, reason = "test code")]
fn first_change(governor: &mut KilledOnDrop) -> Option<String> {
    let (send, lines) = channel();
    let out = BufReader::new(governor.0.stdout.take().unwrap()).lines().map_while(Result::ok);
    // All of them, so that it need not wait for a reader.
    std::thread::spawn(move || out.for_each(|line| drop(send.send(line))));
    let end = Instant::now() + 3 * BOUND;
    let next = || lines.recv_timeout(end.saturating_duration_since(Instant::now())).ok();
    std::iter::from_fn(next).find(|line| line.contains("\"changed\""))
}

/// Every miss of the page cache is a read that a process waits for, though the file system marks it as readahead.
#[test]
fn reads_through_the_page_cache_starve_too() {
    if let Some(why) = missing(&["dd"]).or_else(without_bpf) {
        return skip("reads_through_the_page_cache_starve_too", &why);
    }
    let _clean = SameDisks::start();
    let (dir, _root) = own_journal();
    let disk = slow_disk(slow(), Bytes::mib(256));
    let mut governor = govern(&["--now-only", "--device", &name(disk.device())], dir.path());
    let done = AtomicBool::new(false);
    let changed = std::thread::scope(|scope| {
        let _end = RaiseOnDrop(&done);
        scope.spawn(|| buffered_load(disk.device(), &done));
        let changed = first_change(&mut governor);
        drop(governor);
        changed
    });
    let changed = changed.expect("it changes nothing");
    assert!(changed.contains("of reads took longer than"), "it has measured them: {changed}");
    disk.detach().unwrap();
}

#[test]
fn a_scheduler_and_its_settings_come_back_on_a_real_disk() {
    if let Some(why) = missing(&["losetup"]) {
        return skip("a_scheduler_and_its_settings_come_back_on_a_real_disk", &why);
    }
    let _clean = SameDisks::start();
    let (_dir, root) = own_journal();
    let images = tempfile::tempdir().unwrap();
    let disk = Loop::over(&images.path().join("image"), 8);
    let device = name(&disk.0);
    let offered = root.read(format!("sys/block/{device}/queue/scheduler")).unwrap();
    let Some(other) =
        ["mq-deadline", "kyber", "bfq"].into_iter().find(|name| offered.contains(&format!(" {name}")))
    else {
        return skip("a_scheduler_and_its_settings_come_back_on_a_real_disk", "no other scheduler");
    };
    let requests = Setting::new(&root, named("nr_requests").unwrap(), &device).unwrap();
    requests.set("40").unwrap();
    std::mem::forget(requests);
    let files = ["scheduler", "nr_requests", "wbt_lat_usec"];
    let before = files.map(|file| root.read(format!("sys/block/{device}/queue/{file}")).ok());
    let (_dir2, root2) = own_journal();
    let scheduler = Setting::new(&root2, named("scheduler").unwrap(), &device).unwrap();
    for value in [other, "none", other] {
        scheduler.set(value).unwrap();
        assert!(setting(&root, &device, "scheduler").contains(&format!("[{value}]")));
    }
    scheduler.restore().unwrap();
    assert_eq!(
        files.map(|file| root.read(format!("sys/block/{device}/queue/{file}")).ok()),
        before,
        "nr_requests was set by somebody else"
    );
}

#[test]
fn acknowledged_writes_survive_a_power_cut_while_knobs_change() {
    if let Some(why) = missing(&["losetup"]) {
        return skip("acknowledged_writes_survive_a_power_cut_while_knobs_change", &why);
    }
    let _clean = SameDisks::start();
    let (_dir, root) = own_journal();
    let images = tempfile::tempdir().unwrap();
    let image = Image::File(images.path().join("image"));
    let spec = || {
        SlowDiskSpec::new(image.clone(), Bytes::mib(16), Profile { iops: Some(3_000), ..Profile::plain() })
    };
    let disk = SlowDisk::attach(&Root::host(), spec()).unwrap();
    let device = name(disk.device());
    let mut writer = KnobWriter::new(&root).unwrap();
    let file = Direct::open(disk.device());
    let mut written = 0u64;
    for mut knob in tunable::of(&root, &device) {
        while let Some(value) = knob.lower(2.0) {
            writer.set(&knob, value, "a test").unwrap();
            knob.now = value;
            for _ in 0..8 {
                file.write(written, (written % 250) as u8 + 1).unwrap();
                written += 1;
            }
            file.sync().unwrap();
        }
    }
    assert!(written > 16, "the disk has knobs");
    file.write(written, 255).unwrap();
    disk.power_cut().unwrap();
    drop(file);
    writer.restore_all().unwrap();
    disk.detach().unwrap();
    let disk = SlowDisk::attach(&Root::host(), spec()).unwrap();
    let file = Direct::open(disk.device());
    for index in 0..written {
        assert_eq!(file.read(index).unwrap(), (index % 250) as u8 + 1, "page {index}");
    }
    assert_ne!(file.read(written).unwrap(), 255, "the unacknowledged write is lost: the power was cut");
    drop(file);
    disk.detach().unwrap();
}

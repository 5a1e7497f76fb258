//! Windows, compared with fio's measurements, and on disks that come and go.

#[allow(dead_code, reason = "not every test uses all of it")]
mod common;

use std::process::Command;

use common::{Direct, Loop, missing, name, slow_disk, without_bpf};
use eke_io::histogram::bucket_of;
use eke_io::sensor::{Attribution, SensorOptions, WindowSource};
use eke_io::{Class, Mode, Operation};
use eke_iod::sensor;
use eke_linux::{Root, io_class};
use eke_model::units::Bytes;
use eke_slow_disk::Profile;
use eke_testkit::real::{SameDisks, skip};
use eke_testkit::wait::wait_for;

/// fio's median and 99th percentile of completion latency, in nanoseconds.
#[expect(clippy::unwrap_used, reason = "test code")]
fn fio(device: &str, direction: &str) -> (u64, u64) {
    let filename = format!("--filename={device}");
    let rw = format!("--rw=rand{direction}");
    let output = Command::new("fio")
        .args([
            "--name=a",
            &filename,
            &rw,
            "--bs=4k",
            "--direct=1",
            "--ioengine=psync",
            "--size=60m",
            "--number_ios=1000",
        ])
        .arg("--output-format=json")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let percentiles = &report["jobs"][0][direction]["clat_ns"]["percentile"];
    let of = |share: &str| percentiles[share].as_u64().unwrap();
    (of("50.000000"), of("99.000000"))
}

#[expect(clippy::unwrap_used, reason = "test code")]
fn is_near(histogram: Option<f64>, fio: u64) -> bool {
    bucket_of(histogram.unwrap() as u64).abs_diff(bucket_of(fio)) <= 1
}

#[test]
fn latencies_agree_with_fio_within_one_bucket() {
    if let Some(why) = missing(&["losetup", "fio"]).or_else(without_bpf) {
        return skip("latencies_agree_with_fio_within_one_bucket", &why);
    }
    let _clean = SameDisks::start();
    let disk = slow_disk(Profile { iops: Some(500), rate: 20_000_000, ..Profile::plain() }, Bytes::mib(64));
    let mut local = sensor::start(&Root::host(), SensorOptions::default()).unwrap();
    for (direction, operation) in [("read", Operation::Read), ("write", Operation::Write)] {
        local.window().unwrap();
        let (p50, p99) = fio(&disk.device().display().to_string(), direction);
        let window = local.window().unwrap();
        let device = window.device(&name(disk.device())).unwrap();
        let latency = device.sum(|class| class == Class::new(operation, Mode::Sync));
        assert!(latency.whole.count >= 990, "{direction}: {}", latency.whole.count);
        assert!(is_near(latency.whole.quantile_ns(0.5), p50), "{direction}: {:?}, fio {p50}", latency.whole);
        assert!(is_near(latency.whole.quantile_ns(0.99), p99), "{direction}: {:?}, fio {p99}", latency.whole);
        let parts = latency.queue.sum_ns + latency.device.sum_ns;
        assert_eq!(parts, latency.whole.sum_ns, "queue and device time add up to the whole");
    }
    disk.detach().unwrap();
}

#[test]
fn classes_and_processes_are_counted_apart() {
    if let Some(why) = missing(&["losetup"]).or_else(without_bpf) {
        return skip("classes_and_processes_are_counted_apart", &why);
    }
    let _clean = SameDisks::start();
    let dir = tempfile::tempdir().unwrap();
    let disk = Loop::over(&dir.path().join("image"), 8);
    let mut local = sensor::start(
        &Root::host(),
        SensorOptions { attribution: Attribution::Process, ..SensorOptions::default() },
    )
    .unwrap();
    let file = Direct::open(&disk.0);
    local.window().unwrap();
    (0..50).for_each(|i| file.write(i, 7).unwrap());
    (0..30).for_each(|i| assert_eq!(file.read(i).unwrap(), 7));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            io_class::set(io_class::Class::Idle).unwrap();
            (30..50).for_each(|i| assert_eq!(file.read(i).unwrap(), 7));
        });
    });
    file.sync().unwrap();
    let window = local.window().unwrap();
    let device = window.device(&name(&disk.0)).unwrap();
    let count = |operation, mode| device.sum(|class| class == Class::new(operation, mode)).whole.count;
    assert_eq!((count(Operation::Write, Mode::Sync), count(Operation::Read, Mode::Sync)), (50, 30));
    assert_eq!(count(Operation::Read, Mode::Idle), 20, "nobody waits for reads of the idle class");
    assert_eq!(device.of(Operation::Write).bytes, Bytes(50 * 4096));
    assert!(count(Operation::Flush, Mode::Sync) >= 1, "{device:?}");
    let own =
        window.requesters.iter().filter(|r| r.id == u64::from(std::process::id()) && r.device == device.name);
    let own: u64 = own.map(|r| r.count).sum();
    assert!(own >= 80, "{:?}", window.requesters);
}

#[test]
fn a_disk_that_is_unplugged_is_gone_and_no_error() {
    if let Some(why) = missing(&["losetup"]) {
        return skip("a_disk_that_is_unplugged_is_gone_and_no_error", &why);
    }
    let _clean = SameDisks::start();
    let dir = tempfile::tempdir().unwrap();
    for no_bpf in [false, true] {
        let disk = Loop::over(&dir.path().join(format!("image-{no_bpf}")), 8);
        let mut local =
            sensor::start(&Root::host(), SensorOptions { no_bpf, ..SensorOptions::default() }).unwrap();
        let device = name(&disk.0);
        Direct::open(&disk.0).write(0, 1).unwrap();
        assert!(local.window().unwrap().device(&device).is_some_and(|d| !d.classes.is_empty()));
        disk.detach();
        let size = || Root::host().read(format!("sys/block/{device}/size"));
        wait_for("the loop device to have no disk", || size().map_or(true, |size| size.trim() == "0"));
        let window = local.window().unwrap();
        assert!(window.gone.contains(&device) && window.device(&device).is_none(), "{:?}", window.gone);
        assert!(local.window().unwrap().gone.is_empty(), "once");
    }
}

#[test]
fn two_watchers_see_the_same() {
    if let Some(why) = missing(&["losetup"]).or_else(without_bpf) {
        return skip("two_watchers_see_the_same", &why);
    }
    let _clean = SameDisks::start();
    let dir = tempfile::tempdir().unwrap();
    let disk = Loop::over(&dir.path().join("image"), 8);
    let mut watchers = [0, 1].map(|_| sensor::start(&Root::host(), SensorOptions::default()).unwrap());
    let file = Direct::open(&disk.0);
    (0..40).for_each(|i| file.write(i, 7).unwrap());
    for watcher in &mut watchers {
        let window = watcher.window().unwrap();
        let written = window.device(&name(&disk.0)).unwrap().of(Operation::Write);
        assert_eq!(written.whole.count, 40);
    }
}

#[test]
fn without_bpf_there_are_averages_and_the_reason() {
    if let Some(why) = missing(&["losetup"]) {
        return skip("without_bpf_there_are_averages_and_the_reason", &why);
    }
    let _clean = SameDisks::start();
    let dir = tempfile::tempdir().unwrap();
    let disk = Loop::over(&dir.path().join("image"), 8);
    let mut local = sensor::start(
        &Root::host(),
        SensorOptions { attribution: Attribution::Process, no_bpf: true, ..SensorOptions::default() },
    )
    .unwrap();
    let file = Direct::open(&disk.0);
    (0..40).for_each(|i| file.write(i, 7).unwrap());
    let window = local.window().unwrap();
    let written = window.device(&name(&disk.0)).unwrap().of(Operation::Write);
    assert_eq!((window.source.as_str(), written.whole.count, written.bytes), ("stat", 40, Bytes(40 * 4096)));
    assert!(written.whole.mean_ns().is_some() && written.whole.quantile_ns(0.99).is_none());
    let missing = window.missing.join("\n");
    for reason in ["BPF is switched off", "only BPF can count by process or group", "averages only"] {
        assert!(missing.contains(reason), "{missing}");
    }
}

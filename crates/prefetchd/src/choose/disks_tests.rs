use eke_testkit::tree;

use super::*;
use eke_prefetch_model::file_set::Stamp;
use eke_prefetch_model::file_set::UsedBy;
use eke_prefetch_model::pages::Pages;

/// A machine with one disk, which was measured within its burst.
struct Machine {
    dir: tempfile::TempDir,
    disks: Disks,
}

impl Machine {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let files = [
            ("proc/self/mountinfo", "22 1 8:0 / / rw - ext4 /dev/sda rw\n"),
            ("proc/diskstats", "8 0 sda 1000 0 8000 90 0 0 0 0 0 0 0\n"),
            ("sys/dev/block/8:0/uevent", "DEVNAME=sda\n"),
            ("sys/dev/block/8:0/size", "2048\n"),
        ];
        files.into_iter().for_each(|(file, text)| tree::put(dir.path(), file, text));
        let state = r#"[{"disk":{"disks":["sda"],"rotational":false,"size_bytes":1048576},"measured":{"request_s":0.0001,"near_request_s":0.0001,
            "depth_gain":1.0,"byte_s":2e-9,"reads":60,"bytes":6000000,"took_s":0.1}}]"#;
        let disks = Disks::new(&Root::at(dir.path()), Some(state.as_bytes()));
        Self { dir, disks }
    }

    /// A launch at second `at_s` that does 100 reads of 16 KiB and waits 10 ms for each; by then the counters are `nth` times as high.
    fn launch(&mut self, at_s: u64, nth: u64) -> Vec<DiskReport> {
        self.disks.watch_launch(Duration::from_secs(at_s));
        assert_eq!(self.disks.take_watched(Duration::from_secs(at_s + 1)), [], "it is not over");
        let (reads, sectors, ms) = (1000 + nth * 100, 8000 + nth * 3200, 90 + nth * 1000);
        let line = format!("8 0 sda {reads} 0 {sectors} {ms} 0 0 0 0 0 0 0\n");
        tree::put(self.dir.path(), "proc/diskstats", &line);
        self.disks.take_watched(Duration::from_secs(at_s + 2))
    }

    fn request_s(&self) -> f64 {
        self.disks.profiles()[0].cost.request_s
    }
}

#[test]
fn launches_correct_a_measurement_within_a_burst_and_the_correction_is_stored() {
    let mut machine = Machine::new();
    assert_eq!((machine.launch(0, 1).len(), machine.request_s()), (0, 0.0001));
    let reports = machine.launch(10, 2);
    assert!(reports[0].why.contains("launches waited 75 times as long"), "{reports:?}");
    assert!((machine.request_s() - 0.0075).abs() < 1e-4, "{}", machine.request_s());
    let again = Disks::new(&Root::at(machine.dir.path()), Some(&machine.disks.to_state()));
    assert_eq!(again.profiles()[0].cost, machine.disks.profiles()[0].cost);
}

#[test]
fn while_eke_reads_nothing_is_observed() {
    let mut machine = Machine::new();
    machine.launch(0, 1);
    machine.disks.watch_launch(Duration::from_secs(10));
    machine.disks.stop_watching();
    assert_eq!(machine.disks.take_watched(Duration::from_secs(20)), []);
    assert_eq!(machine.request_s(), 0.0001);
}

#[test]
fn mounts_that_cannot_be_read_now_stay_as_they_were() {
    let mut machine = Machine::new();
    std::fs::remove_file(machine.dir.path().join("proc/self/mountinfo")).unwrap();
    machine.disks.refresh();
    assert_eq!(machine.disks.profiles().len(), 1);
}

#[test]
fn a_disk_that_is_too_small_is_not_measured_again_and_is_no_news() {
    let mut machine = Machine::new();
    let (dev, s) = (eke_linux::device::number("8:0").unwrap(), Duration::from_secs);
    machine.disks.stored = Measurements::default();
    machine.disks.text.clear();
    machine.disks.refresh();
    let small = |bytes| measure::Error::Small { path: "/dev/sda".into(), bytes };
    assert!(machine.disks.is_due(dev, s(0)));
    let busy = measure::Error::Silent { path: "/dev/sda".into(), after: s(1) };
    assert!(!machine.disks.measured(dev, Err(busy), s(0)).is_new);
    assert!(machine.disks.is_due(dev, s(60)), "it may be quiet now");
    assert!(!machine.disks.measured(dev, Err(small(1 << 20)), s(60)).is_new);
    assert!(!machine.disks.is_due(dev, s(100_000)));
}

#[test]
fn a_larger_file_is_measured_where_one_was_too_small() {
    let mut machine = Machine::new();
    let (dev, s) = (eke_linux::device::number("8:0").unwrap(), Duration::from_secs);
    machine.disks.stored = Measurements::default();
    machine.disks.text.clear();
    machine.disks.refresh();
    machine.disks.by_file.insert(dev);
    let of = |bytes| Requested { bytes, path: "/file".into(), ino: 7 };
    machine.disks.requested.borrow_mut().insert(dev, of(4096));
    machine.disks.measured(dev, Err(measure::Error::Small { path: "/file".into(), bytes: 4096 }), s(0));
    assert!(!machine.disks.is_due(dev, s(1000)));
    machine.disks.requested.borrow_mut().insert(dev, of(1 << 30));
    assert!(machine.disks.is_due(dev, s(1000)));
}

#[test]
fn launches_that_hardly_wait_have_a_disk_measured_again() {
    let mut machine = Machine::new();
    let (dev, s) = (eke_linux::device::number("8:0").unwrap(), Duration::from_secs);
    let Some(mut measured) = machine.disks.profiles()[0].measured else { panic!("it is measured") };
    measured = Measured { request_s: 0.02, near_request_s: 0.02, ..measured };
    machine.disks.measured(dev, Ok(measured), s(0));
    let is_due_after = |machine: &mut Machine, nth: u64| {
        machine.disks.watch_launch(s(nth * 10));
        let line = format!("8 0 sda {} 0 {} {} 0 0 0 0 0 0 0\n", nth * 100, nth * 3200, nth);
        tree::put(machine.dir.path(), "proc/diskstats", &line);
        assert_eq!(machine.disks.take_watched(s(nth * 10 + 2)), [], "its costs stay until then");
        machine.disks.is_due(dev, s(nth * 10 + 2))
    };
    tree::put(machine.dir.path(), "proc/diskstats", "8 0 sda 0 0 0 0 0 0 0 0 0 0 0\n");
    let due: Vec<bool> = (1..=5).map(|nth| is_due_after(&mut machine, nth)).collect();
    assert_eq!(due, [false, false, false, false, true]);
    let measured = Measured { request_s: 0.0001, near_request_s: 0.0001, ..measured };
    assert!(machine.disks.measured(dev, Ok(measured), s(60)).is_new);
    assert!(!machine.disks.is_due(dev, s(1_000)));
    assert_eq!(machine.request_s(), 0.0001);
}

#[test]
fn a_disk_that_took_the_name_of_another_one_is_measured() {
    let machine = Machine::new();
    let state = machine.disks.to_state();
    let is_known = || {
        let disks = Disks::new(&Root::at(machine.dir.path()), Some(&state));
        disks.profiles()[0].measured.is_some()
    };
    assert!(is_known());
    tree::put(machine.dir.path(), "sys/dev/block/8:0/device/wwid", "naa.1\n");
    assert!(!is_known());
}

#[test]
fn a_device_that_was_learned_by_its_file_system_is_found_under_its_present_name() {
    let mut machine = Machine::new();
    let dir = machine.dir.path().to_owned();
    let device = |path: &str, ino: u64| Touched {
        path: path.into(),
        kind: Kind::Device,
        stamp: Stamp { dev: 0x811, ino, ..Stamp::default() },
        pages: Pages::default(),
        stale: Pages::default(),
        weight: 1.0,
        used_by: UsedBy::Unknown,
    };
    let files =
        vec![device("/dev/disk/by-uuid/home", 7), device("/dev/sdb", 0), device("/dev/disk/by-uuid/gone", 8)];
    std::fs::create_dir_all(dir.join("dev/disk/by-uuid")).unwrap();
    for (name, expected) in [("sda", vec!["/dev/sda", "/dev/sdb"]), ("sdb", vec!["/dev/sdb"])] {
        let link = dir.join("dev/disk/by-uuid/home");
        _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(format!("../../{name}"), link).unwrap();
        tree::put(&dir, "sys/dev/block/8:0/uevent", &format!("DEVNAME={name}\n"));
        machine.disks.text.clear();
        machine.disks.refresh();
        let mut located = FileSet { files: files.clone() };
        machine.disks.locate(&mut located);
        assert_eq!(
            located.files.iter().map(|file| file.path.to_str().unwrap()).collect::<Vec<_>>(),
            expected
        );
        assert_eq!(located.files[0].stamp.dev, 0, "its number is read anew");
        assert!(machine.disks.cost(&located.files[0]).is_some(), "{name}");
    }
}

#[test]
fn images_of_one_disk_share_its_measurement() {
    let mut machine = Machine::new();
    let mut mounts = "22 1 8:0 / / rw - ext4 /dev/sda rw\n".to_owned();
    for n in 1..=3 {
        mounts += &format!("3{n} 22 7:{n} / /snap/x/{n} ro - squashfs /dev/loop{n} ro\n");
        let dir = format!("sys/dev/block/7:{n}");
        tree::put(machine.dir.path(), &format!("{dir}/uevent"), &format!("DEVNAME=loop{n}\n"));
        tree::put(machine.dir.path(), &format!("{dir}/size"), "8\n");
        tree::put(machine.dir.path(), &format!("{dir}/loop/backing_file"), "/var/x.snap\n");
    }
    tree::put(machine.dir.path(), "proc/self/mountinfo", &mounts);
    machine.disks.refresh();
    let costs: Vec<f64> = machine.disks.profiles().iter().map(|of| of.cost.request_s).collect();
    assert_eq!(costs, [0.0001; 4], "none is measured for itself");
    assert_eq!((machine.launch(0, 1).len(), machine.launch(10, 2).len()), (0, 1), "a launch counts once");
    let costs: BTreeSet<u64> =
        machine.disks.profiles().iter().map(|of| of.cost.request_s.to_bits()).collect();
    assert_eq!((costs.len(), machine.request_s() > 0.005), (1, true));
}

#[test]
fn from_a_rotating_disk_that_may_sleep_nothing_is_read_ahead() {
    let s = Duration::from_secs;
    let rotating = |dir: &Path, is: &str| tree::put(dir, "sys/dev/block/8:0/queue/rotational", is);
    let file = Touched {
        path: "/usr/bin/gedit".into(),
        kind: Kind::File,
        stamp: Stamp::default(),
        pages: Pages::default(),
        stale: Pages::default(),
        weight: 1.0,
        used_by: UsedBy::Unknown,
    };
    for (is_rotating, expected) in [("1\n", false), ("0\n", true)] {
        let machine = Machine::new();
        rotating(machine.dir.path(), is_rotating);
        let mut disks = Disks::new(&Root::at(machine.dir.path()), None);
        disks.note_use(s(1000));
        assert!(disks.awake(s(1299)).cost(&file).is_some());
        assert_eq!(disks.awake(s(1300)).cost(&file).is_some(), expected, "rotational: {is_rotating}");
        assert!(disks.cost(&file).is_some(), "at exec the launch wakes it");
        let dev = eke_linux::device::number("8:0").unwrap();
        assert!(disks.is_due(dev, s(1300)) && disks.poll(s(1300)).is_none());
        assert_eq!(disks.is_measuring(), expected, "nor is it measured");
        tree::put(machine.dir.path(), "proc/diskstats", "8 0 sda 1001 0 8008 91 0 0 0 0 0 0 0\n");
        disks.note_use(s(1310));
        assert!(disks.awake(s(1400)).cost(&file).is_some(), "somebody has used it");
    }
}

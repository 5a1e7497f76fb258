//! The order of the runs and the text, on no real machine.

use eke_model::units::Nanos;

use super::text::render;
use super::*;

#[derive(Default)]
struct Log {
    calls: Vec<&'static str>,
    refuse_disk: bool,
}

impl Arrange for Log {
    type Error = String;
    fn compressed(&mut self) -> Result<(), String> {
        self.calls.push("compressed");
        Ok(())
    }
    fn disk(&mut self, _: &Path) -> Result<(), String> {
        self.calls.push("disk");
        if self.refuse_disk { Err("no".into()) } else { Ok(()) }
    }
    fn none(&mut self) -> Result<(), String> {
        self.calls.push("none");
        Ok(())
    }
}

fn part(p50_us: u64, finished: bool) -> DemoRun {
    let t = Latency {
        count: 1000,
        p50: Nanos::micros(p50_us),
        p99: Nanos::micros(p50_us * 3),
        max: Nanos(1),
        mean: Nanos(1),
    };
    let run = BoxReport {
        exit_code: finished.then_some(0),
        signal: (!finished).then_some(9),
        oom_killed: !finished,
        seconds: 2.0,
        most_swapped: Bytes::mib(120),
        charged_for_most_swapped: Bytes::mib(40),
        ..BoxReport::default()
    };
    DemoRun {
        finished,
        run,
        work_seconds: 1.5,
        passes: 1,
        reads: finished.then_some(t),
        reads_from_swap: 0.9,
        corrupted_pages: 0,
    }
}

fn report(disk_us: u64) -> DemoReport {
    DemoReport {
        memory: Bytes::mib(160),
        data: Bytes::mib(256),
        without: part(0, false),
        disk: Some(part(disk_us, true)),
        compressed: part(10, true),
        seconds: 31.0,
        notes: vec!["something".into()],
    }
}

#[test]
fn on_a_machine_without_groups_everything_is_restored() {
    let spec = DemoSpec::new(vec!["stressor".into()], "/nonexistent".into());
    let mut log = Log::default();
    let refused = run(&Root::at("/nonexistent"), &spec, &mut log, &AtomicBool::new(false));
    assert!(matches!(refused, Err(Error::Box(_))), "{refused:?}");
    assert_eq!(log.calls, ["none", "none"]);
}

#[test]
fn a_disk_that_cannot_be_arranged_is_a_note() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let (root, stop) = (Root::host(), AtomicBool::new(false));
    for (refuse_disk, dir) in [(true, dir.path()), (false, Path::new("/nonexistent"))] {
        let spec = DemoSpec::new(vec!["stressor".into()], dir.into());
        let mut demo = Demo {
            root: &root,
            spec: &DemoSpec { data: Bytes::mib(1), ..spec },
            shutdown: &stop,
            notes: Vec::new(),
        };
        assert_eq!(demo.on_disk(&mut Log { refuse_disk, ..Log::default() }, None).unwrap(), None);
        assert!(demo.notes[0].contains("could not be measured"), "{:?}", demo.notes);
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the file is gone");
}

#[test]
fn the_text_has_the_gain() {
    let text = render(&report(300));
    for part in [
        "finished, 1.5 s",
        "killed by the kernel, 2.0 s",
        "10.0 µs instead of 300 µs: 30.0 times faster",
        "3.00 to 1",
        "note: something",
        "took 31 s",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    let table = text.lines().skip(2).take(4);
    assert!(table.clone().all(|l| l.chars().count() <= 100), "{text}");
    let widths: std::collections::HashSet<usize> = table.map(|l| l.chars().count()).collect();
    assert_eq!(widths.len(), 1, "{text}");
}

#[test]
fn the_text_is_honest_about_a_fast_disk_and_a_box_that_was_large_enough() {
    assert!(render(&report(11)).contains("about as fast"));
    assert!(render(&report(2)).contains("disk is not slower"));
    let large = DemoReport { without: part(10, true), disk: None, ..report(1) };
    assert!(render(&large).contains("was not too small"));
    let broken = DemoRun {
        finished: false,
        corrupted_pages: 3,
        run: BoxReport { exit_code: Some(1), ..BoxReport::default() },
        ..DemoRun::default()
    };
    assert!(render(&DemoReport { compressed: broken, ..report(300) }).contains("3 PAGES WERE CORRUPTED"));
}

#[test]
fn other_swap_is_named() {
    let area = |path: &str| SwapArea { path: path.into(), ..SwapArea::default() };
    assert!(notes_before(&[]).is_empty());
    assert!(notes_before(&[area("/dev/vda2"), area("/swap")])[0].contains("/dev/vda2 and /swap"));
}

#[test]
fn a_process_stuck_without_swap_was_not_killed() {
    let mut stuck = report(1_000);
    stuck.without.run = crate::cgroup_box::BoxReport {
        interrupted: true,
        oom_killed: false,
        signal: Some(9),
        seconds: 20.0,
        ..stuck.without.run
    };
    let text = render(&stuck);
    assert!(text.contains("stuck, ended after 20 s") && text.contains("Without swap it got stuck"), "{text}");
}

#[test]
fn a_long_run_is_ended_and_a_short_one_is_not() {
    let waits = |end: &AtomicBool| {
        while !end.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let never = AtomicBool::new(false);
    within(Duration::from_millis(30), &never, waits);
    within(Duration::from_secs(3600), &AtomicBool::new(true), waits);
    assert!(!within(Duration::from_secs(3600), &never, |end| end.load(Ordering::Relaxed)));
}

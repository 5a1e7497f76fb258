//! The demo on the real kernel, with zram and a swap file arranged by hand.

mod common;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use common::ScratchSwap;
use eke_apply::cgroup;
use eke_linux::{Root, read};
use eke_model::units::Bytes;
use eke_sandbox::demo::{Arrange, DemoSpec, disk_file, run, text};
use eke_testkit::real::{lacking, lock_machine, skip};

struct ByHand(Option<ScratchSwap>);

impl Arrange for ByHand {
    type Error = String;
    fn compressed(&mut self) -> Result<(), String> {
        self.0 = None;
        self.0 = Some(ScratchSwap::zram(Bytes::mib(512)));
        Ok(())
    }
    fn disk(&mut self, file: &Path) -> Result<(), String> {
        self.0 = None;
        self.0 = Some(ScratchSwap::file(file)?);
        Ok(())
    }
    fn none(&mut self) -> Result<(), String> {
        self.0 = None;
        Ok(())
    }
}

#[test]
fn the_demo_shows_a_kill_and_a_finish_and_leaves_nothing() {
    let place = cgroup::GroupParent::find(&Root::host()).err().map(|e| e.to_string());
    if let Some(why) = lacking(&["/sys/class/zram-control/hot_add"]).or(place) {
        return skip("the_demo_shows_a_kill_and_a_finish_and_leaves_nothing", &why);
    }
    let _machine = lock_machine();
    let swaps = read::swaps(&Root::host()).unwrap();
    let dir = tempfile::tempdir_in(disk_file::default_dir()).unwrap();
    let spec = DemoSpec {
        read_seconds: 4.0,
        ..DemoSpec::new(vec![env!("CARGO_BIN_EXE_eke-stressor").into()], dir.path().into())
    };
    let report = run(&Root::host(), &spec, &mut ByHand(None), &AtomicBool::new(false)).unwrap();
    eprintln!("{}", text::render(&report));
    let without = &report.without;
    assert!((without.run.oom_killed || without.run.interrupted) && !without.finished, "{report:?}");
    assert!(report.compressed.finished && report.compressed.reads.unwrap().count > 0, "{report:?}");
    assert!((2.6..3.3).contains(&report.compressed.run.ratio().unwrap()), "{report:?}");
    if let Some(disk) = &report.disk {
        assert!(disk.reads.unwrap().count > 0 && disk.corrupted_pages == 0, "{disk:?}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    assert_eq!(read::swaps(&Root::host()).unwrap(), swaps);
}

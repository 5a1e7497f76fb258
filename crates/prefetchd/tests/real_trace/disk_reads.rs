//! Others' reads of a disk, as reading at exec sees them.

use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use eke_linux::Root;
use eke_prefetchd::trace::{TraceMethod, Tracer};

use crate::start;
use crate::tracing::Disk;

const READS: u64 = 20;

/// A shell's command that makes [`READS`] reads of a device.
fn reading(device: &Path) -> String {
    format!("dd if={} of=/dev/null bs=4096 count={READS} iflag=direct status=none", device.display())
}

#[test]
fn others_reads_are_counted_while_a_launch_is_read_for() {
    let Some(_machine) = start("others_reads_are_counted_while_a_launch_is_read_for") else { return };
    let disk = Disk::new();
    let device = disk.device();
    let number = std::fs::metadata(&device).unwrap().rdev();
    let mut tracer = Tracer::start_by(&Root::host(), TraceMethod::Bpf).unwrap();
    let others = tracer.others_reads().unwrap();
    let counted = |act: &mut dyn FnMut()| {
        let before = others.so_far(&[number]);
        act();
        others.so_far(&[number]) - before
    };
    let mut another_reads = || {
        let mut child = Command::new("sh").args(["-c", &reading(&device)]).spawn().unwrap();
        assert!(eke_testkit::program::end_of(&mut child).success());
    };
    tracer.wait(Duration::ZERO);
    assert_eq!(counted(&mut another_reads), 0, "nothing is read for");
    let script = format!("read go; {}; exit 0", reading(&device));
    let mut launch = Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).spawn().unwrap();
    others.leave_out(launch.id());
    tracer.wait(Duration::ZERO);
    assert!(counted(&mut another_reads) >= READS);
    let of_the_launch = counted(&mut || {
        launch.stdin.take().unwrap().write_all(b"go\n").unwrap();
        assert!(eke_testkit::program::end_of(&mut launch).success());
    });
    assert!(of_the_launch < READS, "a child of the launch read: {of_the_launch}");
    let own = counted(&mut || {
        let mut file = std::fs::File::open(&device).unwrap();
        file.read_exact(&mut vec![0; 8 << 20]).unwrap();
    });
    assert!(own < READS, "this process read: {own}");
    others.take_back(launch.id());
    tracer.wait(Duration::ZERO);
    assert_eq!(counted(&mut another_reads), 0, "nothing is read for any more");
}

//! What the tests of the real kernel share.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use eke_io::sensor::{SensorOptions, WindowSource};
use eke_iod::sensor;
use eke_linux::Root;
use eke_model::units::Bytes;
use eke_slow_disk::{Image, Profile, SlowDisk, SlowDiskSpec};
use eke_testkit::real::{lacking, no_program};

/// Why this machine has no slow disks, or lacks a program.
pub fn missing(programs: &[&str]) -> Option<String> {
    lacking(&["/dev/fuse", "/dev/loop-control"]).or_else(|| no_program(programs))
}

/// Why BPF does not work here: not built in, or the kernel's answer.
pub fn without_bpf() -> Option<String> {
    let window = sensor::start(&Root::host(), SensorOptions::default()).ok()?.window().ok()?;
    (window.source != "bpf").then(|| window.missing.join("; "))
}

/// A slow disk in memory.
#[expect(clippy::unwrap_used, reason = "test code")]
pub fn slow_disk(profile: Profile, size: Bytes) -> SlowDisk {
    SlowDisk::attach(&Root::host(), SlowDiskSpec::new(Image::Memory, size, profile)).unwrap()
}

/// A disk's name without `/dev/`.
pub fn name(device: &Path) -> String {
    device.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A directory that stands for `/`, with this machine's `/sys` and `/proc` and a journal of its own, so that the test does not disturb another eke
/// on this machine.
#[expect(clippy::unwrap_used, reason = "test code")]
pub fn own_journal() -> (tempfile::TempDir, Root) {
    let dir = tempfile::tempdir().unwrap();
    for name in ["sys", "proc"] {
        symlink(Path::new("/").join(name), dir.path().join(name)).unwrap();
    }
    let root = Root::at(dir.path());
    (dir, root)
}

/// A loop device over a file; drop detaches it.
pub struct Loop(pub PathBuf);

impl Loop {
    #[expect(clippy::unwrap_used, reason = "test code")]
    pub fn over(file: &Path, mib: u64) -> Self {
        OpenOptions::new().write(true).create_new(true).open(file).unwrap().set_len(mib << 20).unwrap();
        let made = Command::new("losetup").args(["--find", "--show"]).arg(file).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Self(String::from_utf8_lossy(&made.stdout).trim().into())
    }

    pub fn detach(&self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.0).output();
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        self.detach();
    }
}

/// A writer that delays a reader, until `done`. It writes at once: what dirty pages wait for is half a minute, and then for their end.
pub fn load(disk: &Path, done: &AtomicBool) {
    std::thread::scope(|scope| {
        scope.spawn(|| write_and_sync(disk, done));
        let file = Direct::open(disk);
        read_slowly(done, |i| file.read(i * 977 % 60_000).map(drop));
    });
}

/// The same with a reader that has the page cache between itself and the disk, as programs have: it reads pages of 256 MiB that nobody has read.
#[expect(clippy::unwrap_used, reason = "test code")]
pub fn buffered_load(disk: &Path, done: &AtomicBool) {
    std::thread::scope(|scope| {
        scope.spawn(|| write_and_sync(disk, done));
        let file = File::open(disk).unwrap();
        let mut page = [0; 4096];
        read_slowly(done, |i| file.read_exact_at(&mut page, (WRITTEN_PAGES + i * 977 % 50_000) * 4096));
    });
}

fn read_slowly(done: &AtomicBool, mut read: impl FnMut(u64) -> std::io::Result<()>) {
    for i in 0.. {
        if done.load(Ordering::Relaxed) || read(i).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What [`write_and_sync`] writes.
const WRITTEN_PAGES: u64 = 40 * 256;

fn write_and_sync(disk: &Path, done: &AtomicBool) {
    let to = format!("of={}", disk.display());
    while !done.load(Ordering::Relaxed) {
        let mut dd = Command::new("dd");
        let _ =
            dd.args(["if=/dev/zero", &to, "bs=1M", "count=40", "conv=fsync"]).stderr(Stdio::null()).status();
    }
}

/// Reads and writes that bypass the page cache.
pub struct Direct(File);

/// A page, aligned for O_DIRECT.
fn page(byte: u8) -> (Vec<u8>, usize) {
    let bytes = vec![byte; 8192];
    let start = bytes.as_ptr().align_offset(4096);
    (bytes, start)
}

impl Direct {
    #[expect(clippy::unwrap_used, reason = "test code")]
    pub fn open(device: &Path) -> Self {
        let flag = i32::try_from(rustix::fs::OFlags::DIRECT.bits()).unwrap();
        Self(OpenOptions::new().read(true).write(true).custom_flags(flag).open(device).unwrap())
    }

    pub fn write(&self, index: u64, byte: u8) -> std::io::Result<()> {
        let (bytes, start) = page(byte);
        self.0.write_all_at(&bytes[start..start + 4096], index * 4096)
    }

    pub fn read(&self, index: u64) -> std::io::Result<u8> {
        let (mut bytes, start) = page(0xff);
        self.0.read_exact_at(&mut bytes[start..start + 4096], index * 4096)?;
        Ok(bytes[start])
    }

    pub fn sync(&self) -> std::io::Result<()> {
        self.0.sync_all()
    }
}

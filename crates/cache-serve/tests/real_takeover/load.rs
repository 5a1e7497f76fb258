//! Programs that use a mount until they are stopped. Each compares everything it reads with what must be there.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use eke_testkit::wait::RaiseOnDrop;
use rustix::fs::{Advice, fadvise};

/// Bytes of a large file.
pub const SIZE: usize = 3 << 20;
/// Numbers of large and small files.
pub const LARGE: usize = 4;
pub const SMALL: usize = 40;
const PIECE: usize = 64 << 10;
const RECORD: usize = 64;

/// A load of five users.
#[derive(Default)]
pub struct Load {
    stop: AtomicBool,
    /// Operations of each user so far.
    done: [AtomicU64; 5],
}

/// Compressible bytes, different at each offset of each file.
pub fn content(file: usize, len: usize) -> Vec<u8> {
    (0..len as u64 / 8).flat_map(|n| ((n << 8) | file as u64).to_le_bytes()).collect()
}

/// Fills a directory.
pub fn fill(dir: &Path) {
    let put = |name: String, bytes: &[u8]| {
        File::create_new(dir.join(name)).unwrap().write_all(bytes).unwrap();
    };
    (0..LARGE).for_each(|n| put(format!("large{n}"), &content(n, SIZE)));
    std::fs::create_dir(dir.join("small")).unwrap();
    (0..SMALL).for_each(|n| put(format!("small/{n}"), &content(n, 800)));
}

impl Load {
    /// Runs all users beside `disturb`, then checks the backing files that they wrote.
    pub fn run(&self, place: &Path, backing: &Path, disturb: impl FnOnce(&Self)) {
        std::thread::scope(|s| {
            s.spawn(|| self.cached(place));
            s.spawn(|| self.direct(place));
            s.spawn(|| self.opens(place));
            s.spawn(|| self.unlinked(place));
            s.spawn(|| self.appends(place));
            // Also where that fails: this function waits for the users.
            let _end = RaiseOnDrop(&self.stop);
            disturb(self);
        });
        let records = std::fs::read(backing.join("log")).unwrap();
        assert_eq!(records.len() as u64, self.done[4].load(SeqCst) * RECORD as u64, "each record once");
        let numbers = records.chunks(RECORD).enumerate();
        numbers.for_each(|(n, r)| assert_eq!(r, record(n as u64), "record {n}"));
        assert!(!backing.join("short-lived").exists());
    }

    /// Operations of each user so far.
    pub fn done(&self) -> [u64; 5] {
        std::array::from_fn(|n| self.done[n].load(SeqCst))
    }

    /// Has each user done something since?
    pub fn all_went_on(&self, since: &[u64; 5]) -> bool {
        self.done().iter().zip(since).all(|(now, then)| now > then)
    }

    fn until_stopped(&self, user: usize, mut act: impl FnMut(usize)) {
        for n in 0.. {
            if self.stop.load(SeqCst) {
                return;
            }
            act(n);
            self.done[user].fetch_add(1, SeqCst);
        }
    }

    /// Reads through the kernel's page cache, which it drops again.
    fn cached(&self, place: &Path) {
        let files: Vec<File> =
            (0..LARGE).map(|n| File::open(place.join(format!("large{n}"))).unwrap()).collect();
        let expected: Vec<Vec<u8>> = (0..LARGE).map(|n| content(n, SIZE)).collect();
        let mut buffer = vec![0; PIECE];
        self.until_stopped(0, |n| {
            let (file, at) = (n % LARGE, n.wrapping_mul(7919) % (SIZE / PIECE) * PIECE);
            files[file].read_exact_at(&mut buffer, at as u64).unwrap();
            assert!(buffer == expected[file][at..at + PIECE], "large{file} at {at}");
            fadvise(&files[file], at as u64, None, Advice::DontNeed).unwrap();
        });
    }

    /// Reads past the page cache.
    fn direct(&self, place: &Path) {
        let open = |n| {
            OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(place.join(format!("large{n}")))
        };
        let files: Vec<File> = (0..LARGE).map(|n| open(n).unwrap()).collect();
        let expected: Vec<Vec<u8>> = (0..LARGE).map(|n| content(n, SIZE)).collect();
        let mut memory = vec![0; PIECE + 4096];
        let skip = memory.as_ptr().align_offset(4096);
        let buffer = &mut memory[skip..skip + PIECE];
        self.until_stopped(1, |n| {
            let (file, at) = (n % LARGE, n.wrapping_mul(104_729) % (SIZE / PIECE) * PIECE);
            files[file].read_exact_at(buffer, at as u64).unwrap();
            assert!(*buffer == expected[file][at..at + PIECE], "large{file} at {at}");
        });
    }

    /// Opens, reads attributes, lists.
    fn opens(&self, place: &Path) {
        let small = place.join("small");
        self.until_stopped(2, |n| {
            let file = n % SMALL;
            let path = small.join(file.to_string());
            let mut bytes = Vec::new();
            File::open(&path).unwrap().read_to_end(&mut bytes).unwrap();
            assert!(bytes == content(file, 800) && path.metadata().unwrap().len() == 800);
            if file == 0 {
                assert_eq!(std::fs::read_dir(&small).unwrap().map(Result::unwrap).count(), SMALL);
            }
        });
    }

    /// Uses a file that has no name any more.
    fn unlinked(&self, place: &Path) {
        let path: PathBuf = place.join("short-lived");
        self.until_stopped(3, |n| {
            let mut file =
                OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
            let expected = content(n % 256, 200_000);
            file.write_all(&expected[..100_000]).unwrap();
            std::fs::remove_file(&path).unwrap();
            file.write_all(&expected[100_000..]).unwrap();
            let mut bytes = vec![0; expected.len()];
            file.read_exact_at(&mut bytes, 0).unwrap();
            assert!(bytes == expected, "the file without a name, iteration {n}");
            assert_eq!(file.metadata().unwrap().len(), expected.len() as u64);
        });
    }

    /// Appends records to a file.
    fn appends(&self, place: &Path) {
        let mut log = OpenOptions::new().append(true).create(true).open(place.join("log")).unwrap();
        self.until_stopped(4, |n| log.write_all(&record(n as u64)).unwrap());
    }
}

fn record(number: u64) -> [u8; RECORD] {
    let mut record = [b'.'; RECORD];
    record[..20].copy_from_slice(format!("{number:020}").as_bytes());
    record[RECORD - 1] = b'\n';
    record
}

//! Nothing stays stale: stores through mappings of backing files, files that a server changes while they are open, writeback errors.

mod full_disk;
mod mapping;
mod server;

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

use eke_testkit::program::end_of;
use eke_testkit::real::{lacking, lock_machine, no_program, skip};
use eke_testkit::wait::wait_for;
use rustix::fs::{Advice, SeekFrom, fadvise, seek};
use rustix::io::Errno;

use crate::common::NEEDS;
use crate::common::mount::{InMemory, Mount, scratch};
use full_disk::FullDisk;
use mapping::Mapping;
use server::Server;

const FILES: usize = 8;
const SIZE: usize = 512 << 10;
const PIECE: usize = 64 << 10;

/// Bytes that the program stores to. The rest is read first; if it was dirty, that direct read would write it back.
const STORED: usize = SIZE / 2;

/// A program that stores to pages of its mappings of backing files.
struct Program(Vec<Mapping>);

impl Program {
    fn new(dir: &Path) -> Self {
        let map = |number: usize| {
            let path = dir.join(number.to_string());
            let file = OpenOptions::new().read(true).write(true).create_new(true).open(path).unwrap();
            // One folio for each page, so that writeback of one page takes no other with it.
            (0..SIZE).step_by(4096).for_each(|at| file.write_all_at(&[0; 4096], at as u64).unwrap());
            file.sync_all().unwrap();
            Mapping::shared(&file, SIZE)
        };
        Self((0..FILES).map(map).collect())
    }

    fn store(&mut self, value: u8) {
        self.0.iter_mut().for_each(|mapping| mapping.fill(STORED, value));
    }
}

/// The files that do not have this value everywhere.
fn stale_files(dir: &Path, value: u8) -> Vec<usize> {
    let is_other =
        |number: &usize| read_in_pieces(&dir.join(number.to_string()))[..STORED].iter().any(|b| *b != value);
    (0..FILES).filter(is_other).collect()
}

/// Reads a file in pieces from its end to its start, so that readahead does not join them.
fn read_in_pieces(path: &Path) -> Vec<u8> {
    let (file, mut bytes) = (File::open(path).unwrap(), vec![0; SIZE]);
    fadvise(&file, 0, None, Advice::Random).unwrap();
    for (at, piece) in bytes.chunks_mut(PIECE).enumerate().rev() {
        file.read_exact_at(piece, (at * PIECE) as u64).unwrap();
    }
    bytes
}

/// Close-to-open holds although only the first store to a page changes mtime.
fn stores_are_seen(backing: &Path, place: &Path) {
    let mut program = Program::new(backing);
    for value in 1..5 {
        program.store(value);
        assert_eq!(stale_files(place, value), [0; 0], "files that are stale after store {value}");
    }
}

#[test]
fn stores_through_a_mapping_are_seen_at_the_next_open() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("stores_through_a_mapping_are_seen_at_the_next_open", &why);
    }
    let mount = Mount::new();
    stores_are_seen(mount.backing(), mount.place());
}

/// tmpfs never writes back, so no store after the first one to a page changes mtime.
#[test]
fn stores_through_a_mapping_of_a_file_in_memory_are_seen_at_the_next_open() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("stores_through_a_mapping_of_a_file_in_memory_are_seen_at_the_next_open", &why);
    }
    let backing = scratch();
    let _memory = InMemory::new(backing.path(), 16 << 10);
    let mount = Mount::of(backing.path());
    stores_are_seen(backing.path(), mount.place());
}

#[test]
fn stores_to_a_file_in_memory_inside_a_directory_on_a_disk_are_seen_at_the_next_open() {
    if let Some(why) = lacking(&NEEDS) {
        return skip(
            "stores_to_a_file_in_memory_inside_a_directory_on_a_disk_are_seen_at_the_next_open",
            &why,
        );
    }
    let backing = scratch();
    fs::create_dir(backing.path().join("memory")).unwrap();
    let memory = InMemory::new(&backing.path().join("memory"), 16 << 10);
    let mount = Mount::of(backing.path());
    stores_are_seen(&memory.0, &mount.place().join("memory"));
}

/// The kernel has the stored page, and the backing file a hole there. The program that copies is started before the mapping: a process that
/// has a copy of one writes it back when it executes another program.
#[test]
fn a_store_through_a_mapping_is_no_hole_to_other_programs() {
    if let Some(why) = lacking(&NEEDS).or_else(|| no_program(&["cp"])) {
        return skip("a_store_through_a_mapping_is_no_hole_to_other_programs", &why);
    }
    const AT: usize = 50_000_000;
    const LEN: usize = 64 << 20;
    let mount = Mount::new();
    let (path, copy) = (mount.place().join("sparse"), mount.beside("copies").join("copy"));
    let mut command = Command::new("sh");
    command.args(["-c", "read go && exec cp \"$1\" \"$2\"", "sh"]).arg(&path).arg(&copy);
    let mut copier = command.stdin(Stdio::piped()).spawn().unwrap();
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    file.set_len(LEN as u64).unwrap();
    let mut mapping = Mapping::shared(&file, LEN);
    drop(file);
    mapping.put(AT, 7);

    let reader = File::open(&path).unwrap();
    assert_eq!(seek(&reader, SeekFrom::Data(0)), Ok(0));
    assert_eq!(seek(&reader, SeekFrom::Data(4097)), Ok(4097));
    assert_eq!(seek(&reader, SeekFrom::Hole(0)), Ok(LEN as u64));
    for past in [SeekFrom::Data(LEN as u64), SeekFrom::Hole(LEN as u64)] {
        assert_eq!(seek(&reader, past), Err(Errno::NXIO));
    }
    copier.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert!(end_of(&mut copier).success());
    let mut byte = [0];
    File::open(&copy).unwrap().read_exact_at(&mut byte, AT as u64).unwrap();
    assert_eq!(byte, [7], "what was copied");

    drop(mapping);
    let backing = File::open(mount.backing().join("sparse")).unwrap();
    let data = |file: &File| seek(file, SeekFrom::Data(0));
    wait_for("its holes to show", || data(&reader) == data(&backing));
    backing.read_exact_at(&mut byte, AT as u64).unwrap();
    assert_eq!(byte, [7], "what was written back");
}

/// A network file system caches attributes of an open file for a while, so each open must ask the server.
#[test]
fn an_open_of_an_open_file_asks_the_server() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("an_open_of_an_open_file_asks_the_server", &why);
    }
    let backing = scratch();
    let server = Server::start(backing.path());
    server.put(&[1; 5000]);
    let mount = Mount::of(backing.path());
    let path = mount.place().join("file");
    let open = File::open(&path).unwrap();
    assert!(fs::read(&path).unwrap() == [1; 5000]);
    server.put(&[2; 5000]);
    assert!(fs::read(&path).unwrap() == [2; 5000], "close-to-open");
    server.put(&[3; 9000]);
    assert!(fs::read(&path).unwrap() == [3; 9000], "longer");
    drop(open);
    wait_for("the backing file to be closed", || server.opens() == 0);
}

/// Does fdatasync(2) fail for three programs that have a file open to write, after one of them wrote more than the disk takes?
fn sync_fails(dir: &Path) -> [bool; 3] {
    let path = dir.join("file");
    let open = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).unwrap();
    let files = [open(), open(), open()];
    files[0].write_all_at(&vec![1; 12 << 20], 0).unwrap();
    files.map(|file| file.sync_data().is_err())
}

/// As on a plain directory.
#[test]
fn a_writeback_error_reaches_every_open_file() {
    let why = lacking(&NEEDS).or_else(|| no_program(&full_disk::PROGRAMS));
    if let Some(why) = why {
        return skip("a_writeback_error_reaches_every_open_file", &why);
    }
    let _machine = lock_machine();
    let dirs = [scratch(), scratch()];
    let disks = dirs.each_ref().map(|dir| FullDisk::new(dir.path()));
    let mount = Mount::of(disks[0].place());
    assert_eq!(sync_fails(disks[1].place()), [true; 3], "on a plain directory");
    assert_eq!(sync_fails(mount.place()), [true; 3]);
}

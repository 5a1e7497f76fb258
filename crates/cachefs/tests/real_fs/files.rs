//! Regular files.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::time::Duration;

use rustix::fs::{FallocateFlags, copy_file_range, fallocate};
use rustix::io::Errno;

use eke_cache_policy::admission::{PassthroughMode, Reason};
use eke_testkit::real::{lacking, skip};
use eke_testkit::wait::wait_for;

use super::mounted::{Mounted, each, each_for};

fn update() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options
}

#[test]
fn a_write_is_in_the_backing_file_when_it_returns() {
    each("written", |m| {
        let data: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
        let file = update().create_new(true).open(m.at("file")).unwrap();
        file.write_all_at(&data, 0).unwrap();
        assert!(fs::read(m.backing("file")).unwrap() == data);
        file.write_all_at(b"changed", 1_000_001).unwrap();
        let mut read = vec![0; data.len()];
        File::open(m.at("file")).unwrap().read_exact(&mut read).unwrap();
        assert_eq!(&read[1_000_001..1_000_008], b"changed");
        assert!(read == fs::read(m.backing("file")).unwrap());
        file.sync_all().unwrap();
        file.sync_data().unwrap();
    });
}

#[test]
fn flags_of_open_have_their_meaning() {
    each("flags", |m| {
        fs::write(m.at("file"), "0123456789").unwrap();
        let mut appender = OpenOptions::new().append(true).open(m.at("file")).unwrap();
        // Somebody else appends to the backing file; our append comes after that.
        fs::write(m.backing("file"), "0123456789other").unwrap();
        appender.write_all(b"end").unwrap();
        assert_eq!(fs::read(m.backing("file")).unwrap(), b"0123456789otherend");
        drop(appender);
        assert_eq!(fs::read(m.at("file")).unwrap(), b"0123456789otherend");
        File::create(m.at("file")).unwrap();
        assert_eq!(fs::metadata(m.backing("file")).unwrap().size(), 0);
        let exclusive = update().create_new(true).open(m.at("file")).unwrap_err();
        assert_eq!(exclusive.raw_os_error(), Some(libc::EEXIST));
        let mut write_only =
            OpenOptions::new().write(true).create_new(true).mode(0o200).open(m.at("secret")).unwrap();
        write_only.write_all(b"x").unwrap();
        assert_eq!(fs::metadata(m.backing("secret")).unwrap().size(), 1);
    });
}

#[test]
fn an_open_file_survives_the_loss_of_its_name() {
    each_for("unlinked", Duration::ZERO, |m| {
        fs::write(m.at("file"), "first").unwrap();
        fs::write(m.at("other"), "other").unwrap();
        let mut gone = update().open(m.at("file")).unwrap();
        let mut replaced = File::open(m.at("other")).unwrap();
        fs::remove_file(m.at("file")).unwrap();
        fs::write(m.at("file"), "second").unwrap();
        fs::rename(m.at("file"), m.at("other")).unwrap();
        gone.seek(SeekFrom::End(0)).unwrap();
        gone.write_all(b" and more").unwrap();
        gone.rewind().unwrap();
        let mut text = String::new();
        gone.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), gone.metadata().unwrap().nlink()), ("first and more", 0));
        gone.set_len(2).unwrap();
        assert_eq!(gone.metadata().unwrap().size(), 2);
        text.clear();
        replaced.read_to_string(&mut text).unwrap();
        assert_eq!(text, "other");
        assert_eq!(fs::read(m.at("other")).unwrap(), b"second");
    });
}

#[test]
fn memory_that_is_mapped_is_the_file() {
    each("mapped", |m| {
        fs::write(m.at("file"), vec![b'a'; 10_000]).unwrap();
        // Another program maps the file: this test has no unsafe code.
        let python =
            "import mmap,sys\nf=open(sys.argv[1],'r+b')\nm=mmap.mmap(f.fileno(),0)\nm[5000]=66\nm.flush()";
        let mapped = std::process::Command::new("python3").args(["-c", python]).arg(m.at("file")).status();
        match mapped {
            Ok(status) => {
                assert!(status.success());
                assert_eq!(fs::read(m.backing("file")).unwrap()[4999..5002], *b"aBa");
            }
            Err(e) => eke_testkit::real::skip("mapped", &format!("no python3: {e}")),
        }
    });
}

#[test]
fn holes_stay_holes_in_a_file_of_a_tebibyte() {
    each("sparse", |m| {
        let size = 1 << 40;
        let file = update().create_new(true).open(m.at("sparse")).unwrap();
        file.set_len(size).unwrap();
        file.write_all_at(b"data", 1 << 30).unwrap();
        let data = |file: &File| rustix::fs::seek(file, rustix::fs::SeekFrom::Data(0));
        assert_eq!(data(&file), Ok(0), "it may be mapped");
        drop(file);
        let file = File::open(m.at("sparse")).unwrap();
        wait_for("its holes", || data(&file) == Ok(1 << 30));
        assert_eq!(rustix::fs::seek(&file, rustix::fs::SeekFrom::Hole(1 << 30)), Ok((1 << 30) + 4096));
        let mut end = [1; 100];
        file.read_exact_at(&mut end, size - 100).unwrap();
        assert_eq!(end, [0; 100]);
        let found = fs::metadata(m.backing("sparse")).unwrap();
        assert_eq!(found.size(), size);
        assert!(found.blocks() < 1000, "{} blocks", found.blocks());
    });
}

#[test]
fn fallocate_and_copies_reach_the_backing_file() {
    each("room", |m| {
        let file = update().create_new(true).open(m.at("file")).unwrap();
        fallocate(&file, FallocateFlags::empty(), 0, 1 << 20).unwrap();
        assert!(fs::metadata(m.backing("file")).unwrap().blocks() >= 2048);
        file.write_all_at(&[7; 8192], 0).unwrap();
        let mut byte = [0; 1];
        file.read_exact_at(&mut byte, 4096).unwrap();
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&file, punch, 4096, 4096).unwrap();
        file.read_exact_at(&mut byte, 4096).unwrap();
        assert_eq!(byte, [0]);
        let copy = update().create_new(true).open(m.at("copy")).unwrap();
        assert_eq!(copy_file_range(&file, Some(&mut 0), &copy, Some(&mut 10), 5000), Ok(5000));
        let copied = fs::read(m.at("copy")).unwrap();
        assert_eq!((copied.len(), &copied[9..11], copied[10 + 4096]), (5010, &[0, 7][..], 0));
        assert_eq!(fallocate(&file, FallocateFlags::empty(), 0, 0), Err(Errno::INVAL));
    });
}

#[test]
fn statfs_returns_the_backing_file_systems_space() {
    each("space", |m| {
        let space = |path| {
            let s = rustix::fs::statvfs(path).unwrap();
            (s.f_blocks, s.f_files, s.f_bsize, s.f_frsize, s.f_namemax)
        };
        assert_eq!(space(m.at("")), space(m.backing("")));
    });
}

#[test]
fn a_file_that_does_not_compress_passes_through() {
    let name = "a_file_that_does_not_compress_passes_through";
    if let Some(why) = lacking(&["/dev/fuse", "/dev/urandom"]) {
        return skip(name, &why);
    }
    let mounted = Mounted::new(&std::env::temp_dir(), Duration::ZERO, PassthroughMode::Auto);
    let mut random = vec![0; 2 << 20];
    File::open("/dev/urandom").unwrap().read_exact(&mut random).unwrap();
    fs::write(mounted.backing("random"), &random).unwrap();
    let text: Vec<u8> = (0..200_000_u32).flat_map(|number| number.to_string().into_bytes()).collect();
    fs::write(mounted.backing("text"), &text).unwrap();
    for _ in 0..4 {
        assert!(
            fs::read(mounted.at("random")).unwrap() == random
                && fs::read(mounted.at("text")).unwrap() == text
        );
    }
    if let Some(why) = mounted.no_passthrough() {
        return skip(name, &why);
    }
    let reasons = mounted.admission().report().reasons;
    let incompressible = reasons.iter().filter(|reason| **reason == Reason::Incompressible);
    assert_eq!(incompressible.count(), 1, "{reasons:?}");
}

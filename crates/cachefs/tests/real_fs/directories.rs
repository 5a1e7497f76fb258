//! Directories with many names, and names that come and go while they are listed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;

use super::mounted::{Mounted, each};

fn fill(m: &Mounted, names: std::ops::Range<u32>) {
    fs::create_dir(m.backing("dir")).unwrap();
    names.for_each(|n| drop(fs::File::create(m.backing(&format!("dir/{n}"))).unwrap()));
}

fn number(entry: std::io::Result<fs::DirEntry>) -> u32 {
    entry.unwrap().file_name().to_str().unwrap().parse().unwrap()
}

#[test]
fn a_directory_has_a_hundred_thousand_names() {
    each("many", |m| {
        fill(m, 0..100_000);
        let listed: Vec<_> = fs::read_dir(m.at("dir")).unwrap().map(number).collect();
        assert_eq!(listed.len(), 100_000);
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>().len(), 100_000);
    });
}

#[test]
fn names_that_stay_are_listed_once_while_others_come_and_go() {
    each("changing", |m| {
        fill(m, 0..5000);
        let mut listed = Vec::new();
        for (at, entry) in fs::read_dir(m.at("dir")).unwrap().enumerate() {
            listed.push(number(entry));
            if at % 10 == 0 {
                let odd = at / 5 + 1;
                let _ = fs::remove_file(m.at(&format!("dir/{odd}")));
                fs::File::create(m.at(&format!("dir/{}", 10_000 + at))).unwrap();
            }
        }
        let (seen, stayed) = (listed.len(), |n: &u32| n % 2 == 0 && *n < 5000);
        assert_eq!(listed.iter().filter(|n| stayed(n)).count(), 2500);
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>().len(), seen);
    });
}

#[test]
fn entries_have_the_backing_inodes_numbers() {
    each("numbers", |m| {
        fill(m, 0..300);
        for entry in fs::read_dir(m.at("dir")).unwrap() {
            let entry = entry.unwrap();
            let name = format!("dir/{}", entry.file_name().to_str().unwrap());
            let ino = fs::metadata(m.backing(&name)).unwrap().ino();
            assert_eq!(
                (entry.metadata().unwrap().ino(), fs::metadata(m.at(&name)).unwrap().ino()),
                (ino, ino)
            );
        }
        fs::File::open(m.at("dir")).unwrap().sync_all().unwrap();
    });
}

#[test]
fn many_files_are_open_at_a_time() {
    each("open", |m| {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let raised = rustix::process::Rlimit { current: limit.maximum, ..limit };
        rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).unwrap();
        // Each is open here; its backing file is open for reading and by its path.
        let most = u32::try_from(limit.maximum.unwrap_or(1 << 20) / 5).unwrap().min(10_000);
        fill(m, 0..most);
        let open: Vec<_> = (0..most).map(|n| fs::File::open(m.at(&format!("dir/{n}"))).unwrap()).collect();
        assert!(open.iter().all(|f| f.metadata().unwrap().is_file()));
    });
}

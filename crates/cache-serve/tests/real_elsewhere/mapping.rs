//! A process that stores to a file through a shared mapping. It is this program once more, as a test that is ignored otherwise.

use std::fs::File;
use std::io::BufRead;
use std::path::Path;
use std::process::Command;

use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync};

use crate::child::Child;

/// What it stores at the file's start.
pub const STORED: &str = "stored through a mapping";
const FILE: &str = "EKE_TEST_MAPPED";
const LEN: usize = 4096;

/// Stores to this file, says so, and writes it back when it may go on.
pub fn child(file: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let args = ["--ignored", "--exact", "--nocapture", "-q", "mapping::stores_through_a_mapping"];
    Child::start(command.args(args).env(FILE, file))
}

#[test]
#[ignore = "a process of another test"]
#[expect(unsafe_code, reason = "mmap(2) has no safe wrapper")]
fn stores_through_a_mapping() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let file = File::options().read(true).write(true).open(path).unwrap();
    let rights = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses an unused address, and the bytes are in the mapping, which stays.
    let start = unsafe {
        let start = mmap(std::ptr::null_mut(), LEN, rights, MapFlags::SHARED, &file, 0).unwrap();
        start.cast::<u8>().copy_from(STORED.as_ptr(), STORED.len());
        start
    };
    println!("ready");
    std::io::stdin().lock().read_line(&mut String::new()).unwrap();
    // SAFETY: the range is mapped.
    unsafe { msync(start, LEN, MsyncFlags::SYNC) }.unwrap();
}

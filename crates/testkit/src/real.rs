//! What tests of the real kernel share.

use std::fs::{File, OpenOptions};

use rustix::fs::{FlockOperation, flock};

/// Holds the machine for one test: swap, zram and groups are the whole machine's. Released when dropped.
#[derive(Debug)]
pub struct MachineLock(#[expect(dead_code, reason = "held for its lock")] File);

/// Waits for the machine.
///
/// # Panics
/// If the lock's file cannot be made: then no test of the real kernel can be trusted.
#[expect(clippy::panic, reason = "test code")]
pub fn lock_machine() -> MachineLock {
    let path = std::env::temp_dir().join("eke-tests.lock");
    match OpenOptions::new().write(true).create(true).truncate(false).open(&path) {
        Ok(file) => {
            let _ = flock(&file, FlockOperation::LockExclusive);
            MachineLock(file)
        }
        Err(e) => panic!("cannot open {}: {e}", path.display()),
    }
}

/// Why a test of the real kernel cannot run here, `None` if it can. With `EKE_TESTS=require` nothing may be skipped.
///
/// # Panics
/// If `EKE_TESTS=require` and something lacks.
#[expect(clippy::panic, reason = "test code")]
pub fn lacking(needs: &[&str]) -> Option<String> {
    let why = if rustix::process::geteuid().is_root() {
        needs.iter().find(|p| !std::path::Path::new(p).exists()).map(|p| format!("no {p} on this machine"))
    } else {
        Some("not root".to_owned())
    };
    if let (Some(why), Ok("require")) = (&why, std::env::var("EKE_TESTS").as_deref()) {
        panic!("a required test cannot run: {why}");
    }
    why
}

/// Prints why a test is skipped, in the form that `make test` counts.
pub fn skip(test: &str, why: &str) {
    eprintln!("skipped: {test}: {why}");
}

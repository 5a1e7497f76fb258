//! Files with a lease of another process.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::time::Duration;

use eke_testkit::real::skip;

use super::mounted::each;

/// Longer than a request takes on a busy machine, and much shorter than a lease lasts.
const SOON: Duration = Duration::from_secs(15);

/// Takes a write lease; false if the file system has none.
fn lease(file: &File) -> bool {
    #[expect(unsafe_code, reason = "rustix has no F_SETLEASE")]
    // SAFETY: the arguments are numbers.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) };
    answer == 0
}

/// Reads a file on a thread of its own.
fn reads(path: PathBuf) -> std::sync::mpsc::Receiver<std::io::Result<String>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || sender.send(fs::read_to_string(path)));
    receiver
}

#[test]
fn leases_of_a_user_keep_nobody_else_waiting() {
    // The kernel tells the holder by this signal, which would end the test.
    signal_hook::flag::register(libc::SIGIO, Arc::new(AtomicBool::new(false))).unwrap();
    each("leases", |m| {
        let names: Vec<String> = (0..6).map(|n| format!("leased{n}")).collect();
        names
            .iter()
            .chain([&"free".to_owned()])
            .for_each(|name| fs::write(m.backing(name), "content").unwrap());
        let held: Vec<File> =
            names.iter().map(|name| File::options().write(true).open(m.backing(name)).unwrap()).collect();
        if !held.iter().all(lease) {
            return skip("leases", "this file system has none");
        }
        // More than the sessions of this mount.
        let waiting: Vec<_> = names.iter().map(|name| reads(m.at(name))).collect();
        let (refused, waiting): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .map(|opened| opened.recv_timeout(SOON / 5).map_err(|_| opened))
            .partition(Result::is_ok);
        let errors: Vec<_> =
            refused.into_iter().map(|answer| answer.unwrap().unwrap_err().raw_os_error()).collect();
        assert_eq!(errors, vec![Some(libc::EAGAIN); 4], "two opens of a user wait");
        assert_eq!(reads(m.at("free")).recv_timeout(SOON).unwrap().unwrap(), "content");
        drop(held);
        for opened in waiting {
            assert_eq!(opened.unwrap_err().recv_timeout(SOON).unwrap().unwrap(), "content");
        }
    });
}

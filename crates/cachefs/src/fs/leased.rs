//! Opens of files on which another process has a lease (fcntl(2), "Leases"): the kernel would let open(2) sleep until the holder
//! gives it up, or for 45 s (`/proc/sys/fs/lease-break-time`). Any user can take one on an own file, so no session waits.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::error;
use super::places::{Place, Places};

/// The most opens that wait, each on a thread.
const MOST: usize = 8;
/// The same for one user. More are refused with EAGAIN.
const OF_USER: usize = 2;
/// A holder that behaves gives its lease up within milliseconds.
const PAUSE: Duration = Duration::from_millis(20);
/// Longer than the kernel's default limit, after which it takes the lease away.
const PATIENCE: Duration = Duration::from_secs(60);

/// The places of opens that wait.
pub(super) fn places() -> Arc<Places> {
    Places::new(OF_USER, MOST)
}

/// Opens again and again, until no lease is in the way.
///
/// # Errors
/// Those of `open`; EWOULDBLOCK if the lease outlives the patience.
pub(super) fn wait<T>(_: &Place, mut open: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let end = Instant::now() + PATIENCE;
    loop {
        let opened = open();
        if !is_leased(&opened) || Instant::now() > end {
            return opened;
        }
        std::thread::sleep(PAUSE);
    }
}

/// True if the open failed because of a lease.
pub(super) fn is_leased<T>(opened: &io::Result<T>) -> bool {
    error::is(opened, Errno::WOULDBLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_waits_while_a_lease_is_in_the_way() {
        let place = places().take(0).unwrap();
        let mut answers = vec![Err(Errno::NOENT), Ok(7), Err(Errno::WOULDBLOCK), Err(Errno::WOULDBLOCK)];
        let mut next = || answers.pop().unwrap().map_err(io::Error::from);
        assert_eq!(wait(&place, &mut next).unwrap(), 7);
        assert_eq!(wait(&place, next).unwrap_err().raw_os_error(), Some(libc::ENOENT));
    }
}

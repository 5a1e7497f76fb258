//! Sends answers when they are due. The model returns them in order, so one queue and one sleeping thread are enough.

use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use super::state::DiskState;

struct Due {
    at: Instant,
    send: Box<dyn FnOnce() + Send>,
}

/// The sending end of the queue. The thread ends when it is dropped.
pub(super) struct Pace(Sender<Due>);

impl Pace {
    /// Starts the thread.
    pub(super) fn start(disk: Arc<DiskState>) -> io::Result<(Self, JoinHandle<()>)> {
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new().name("slow-disk".into());
        let thread = thread.spawn(move || answer(&receiver, &disk))?;
        Ok((Self(sender), thread))
    }

    /// Calls `send` at that time. If the thread has ended, `send` is dropped, which answers EIO.
    pub(super) fn at(&self, at: Instant, send: impl FnOnce() + Send + 'static) {
        let _ = self.0.send(Due { at, send: Box::new(send) });
    }
}

fn answer(queue: &Receiver<Due>, disk: &DiskState) {
    // By default a sleep may last 50 µs too long, a tenth of an SD card's request (PR_SET_TIMERSLACK, prctl(2)).
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    come_first();
    for due in queue {
        std::thread::sleep(due.at.saturating_duration_since(Instant::now()));
        // Before the answer, because the next request may follow it at once.
        disk.note_late(due.at.elapsed());
        (due.send)();
    }
}

/// Gives the calling thread priority over all ordinary ones: a disk does not wait for a processor. On Linux,
/// PRIO_PROCESS concerns one thread (setpriority(2), "C library/kernel differences"). Without permission the disk is
/// only less accurate.
pub(super) fn come_first() {
    let _ = rustix::process::setpriority_process(None, -20);
}

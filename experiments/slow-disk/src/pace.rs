//! Answers when they are due. The model gives them in order, so one queue and one sleeping thread are enough.

use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use super::desk::Desk;

struct Due {
    at: Instant,
    send: Box<dyn FnOnce() + Send>,
}

/// The queue's end at which answers are put in. The thread ends when this is dropped.
pub(super) struct Pace(Sender<Due>);

impl Pace {
    /// Starts the thread.
    pub(super) fn start(desk: Arc<Desk>) -> io::Result<(Self, JoinHandle<()>)> {
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new().name("slow-disk".into());
        let thread = thread.spawn(move || answer(&receiver, &desk))?;
        Ok((Self(sender), thread))
    }

    /// Does `send` at that time. If the thread is gone, `send` is dropped, which answers with EIO.
    pub(super) fn at(&self, at: Instant, send: impl FnOnce() + Send + 'static) {
        let _ = self.0.send(Due { at, send: Box::new(send) });
    }
}

fn answer(queue: &Receiver<Due>, desk: &Desk) {
    // By default a sleep may end 50 µs late, a tenth of an SD card's request (PR_SET_TIMERSLACK, prctl(2)).
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    come_first();
    for due in queue {
        std::thread::sleep(due.at.saturating_duration_since(Instant::now()));
        // Before the answer, on which the next request may follow at once.
        desk.note_late(due.at.elapsed());
        (due.send)();
    }
}

/// The calling thread before all ordinary ones: a disk does not wait for a processor. On Linux, PRIO_PROCESS is about one
/// thread (setpriority(2), "C library/kernel differences"). Without the right to do so the disk is only less exact.
pub(super) fn come_first() {
    let _ = rustix::process::setpriority_process(None, -20);
}

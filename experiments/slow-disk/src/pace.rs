//! Sends answers when they are due, and lets the disk go on when its head is free: one thread, which sleeps in between.

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use super::due::{Batch, Due};
use super::state::DiskState;

/// The sending end of the queue. The thread ends when it is dropped and all is answered.
pub(super) struct Pace(Sender<Batch>);

impl Pace {
    /// Starts the thread.
    pub(super) fn start(disk: Arc<DiskState>) -> io::Result<(Self, JoinHandle<()>)> {
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new().name("slow-disk".into());
        let thread = thread.spawn(move || answer(&receiver, &disk))?;
        Ok((Self(sender), thread))
    }

    /// Hands these over. If the thread has ended, they are dropped, which answers EIO.
    pub(super) fn add(&self, batch: Batch) {
        let _ = self.0.send(batch);
    }
}

fn answer(queue: &Receiver<Batch>, disk: &DiskState) {
    // By default a sleep may last 50 µs too long, a tenth of an SD card's request (PR_SET_TIMERSLACK, prctl(2)).
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    come_first();
    let mut agenda = Agenda::default();
    loop {
        let Some(next) = agenda.next() else {
            let Ok(batch) = queue.recv() else { return };
            agenda.add(batch);
            continue;
        };
        match queue.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(batch) => agenda.add(batch),
            Err(RecvTimeoutError::Timeout) => agenda.act(disk),
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(next.saturating_duration_since(Instant::now()));
                agenda.act(disk);
            }
        }
    }
}

/// What the thread has to do.
#[derive(Default)]
struct Agenda {
    /// By time; those of the same time in the order in which they came.
    due: VecDeque<Due>,
    wakes: Option<Instant>,
}

impl Agenda {
    fn next(&self) -> Option<Instant> {
        self.due.front().map(|due| due.at).into_iter().chain(self.wakes).min()
    }

    fn add(&mut self, batch: Batch) {
        self.wakes = batch.wakes;
        for due in batch.due {
            let index = self.due.partition_point(|other| other.at <= due.at);
            self.due.insert(index, due);
        }
    }

    /// Sends the first answer, if it is due; otherwise lets the disk go on.
    fn act(&mut self, disk: &DiskState) {
        if self.due.front().is_none_or(|due| due.at > Instant::now()) {
            return self.add(disk.advance());
        }
        let Some(due) = self.due.pop_front() else { return };
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

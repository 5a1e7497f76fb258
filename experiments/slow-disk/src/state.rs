//! The state of a disk: model, image and faults together give the answer to a request, and the time at which it is due.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use eke_model::units::{Bytes, Nanos};
use rustix::io::Errno;

use super::faults::Faults;
use super::model::{Kind, Model, Request};
use super::stats::Stats;
use super::store::Store;

/// Data for a read, nothing for other requests, or the error for the kernel.
pub(super) type Answer = Result<Vec<u8>, Errno>;

/// The state of a disk, shared by the server and the owner.
#[derive(Debug)]
pub(super) struct DiskState {
    epoch: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    model: Model,
    store: Store,
    faults: Faults,
    stats: Stats,
    powered: bool,
    /// The lateness of the last answer.
    lateness: Duration,
    /// Whether to compensate for it: the next request then counts as made that much earlier.
    compensates: bool,
}

/// A longer delay is not the scheduler: somebody stopped this machine (a debugger, a suspend).
const MOST_LATENESS: Duration = Duration::from_millis(50);

impl DiskState {
    /// A disk with power and without faults.
    pub(super) fn new(model: Model, store: Store) -> Self {
        let state = State {
            model,
            store,
            faults: Faults::default(),
            stats: Stats::default(),
            powered: true,
            lateness: Duration::ZERO,
            compensates: false,
        };
        Self { epoch: Instant::now(), state: Mutex::new(state) }
    }

    /// Serves a request that arrives now. If the last answer was late, so is this request, which waited for it. Without
    /// power, an answer is due at once.
    pub(super) fn serve(&self, request: &Request, write: &[u8]) -> (Instant, Answer) {
        let now = Nanos::from(self.epoch.elapsed());
        let mut state = self.state();
        if !state.powered {
            state.stats.errors += 1;
            return (Instant::now(), Err(Errno::IO));
        }
        let asked = Nanos(now.0.saturating_sub(Nanos::from(state.lateness).0));
        let due = state.model.serve(asked, request);
        let answer = state.answer(request, write);
        match answer {
            Ok(_) => state.stats.count(request, Nanos(due.0.saturating_sub(now.0))),
            Err(_) => state.stats.errors += 1,
        }
        (self.epoch + Duration::from_nanos(due.0), answer)
    }

    /// Starts with a new model, compensates for late answers, and resets the counters.
    pub(super) fn begin(&self, model: Model) {
        let mut state = self.state();
        state.model = model;
        state.stats = Stats::default();
        state.compensates = true;
    }

    /// Changes the faults; see [`Faults`].
    pub(super) fn change_faults(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut self.state().faults);
    }

    /// Cuts the power: undoes unflushed writes, and fails every later request. Returns the number of lost bytes.
    pub(super) fn cut(&self) -> std::io::Result<Bytes> {
        let mut state = self.state();
        state.powered = false;
        let lost = state.store.cut()?;
        state.stats.lost = state.stats.lost + lost;
        Ok(lost)
    }

    /// Turns the power off without losing data.
    pub(super) fn turn_off(&self) {
        self.state().powered = false;
    }

    /// Records the lateness of an answer.
    pub(super) fn note_late(&self, time: Duration) {
        let mut state = self.state();
        if state.compensates {
            state.lateness = time.min(MOST_LATENESS);
        }
        state.stats.late = Nanos(state.stats.late.0.saturating_add(Nanos::from(time).0));
    }

    /// The counters.
    pub(super) fn stats(&self) -> Stats {
        self.state().stats
    }

    /// A thread that panicked leaves counters, not half-done work.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn answer(&mut self, request: &Request, write: &[u8]) -> Answer {
        if let Some(errno) = self.faults.error_of(request) {
            return Err(errno);
        }
        let done = match request.kind {
            Kind::Read => self.store.read(request.offset, request.length),
            Kind::Write => self.store.write(request.offset, write).map(|()| Vec::new()),
            Kind::Flush => {
                self.store.flush();
                Ok(Vec::new())
            }
        };
        done.map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    fn disk() -> DiskState {
        let image = tempfile::tempfile().unwrap();
        image.set_len(1 << 20).unwrap();
        let size = Bytes::mib(1);
        DiskState::new(Model::new(Profile::plain(), size, Nanos(0)), Store::new(image, size, size))
    }

    fn write(disk: &DiskState, offset: u64, bytes: &[u8]) -> Answer {
        let length = bytes.len() as u64;
        disk.serve(&Request { kind: Kind::Write, offset, length }, bytes).1
    }

    fn read(disk: &DiskState, offset: u64, length: u64) -> Answer {
        disk.serve(&Request { kind: Kind::Read, offset, length }, &[]).1
    }

    #[test]
    fn written_data_is_read_and_counted() {
        let disk = disk();
        write(&disk, 100, b"hello").unwrap();
        assert_eq!(read(&disk, 100, 5).unwrap(), b"hello");
        let stats = disk.stats();
        assert_eq!((stats.writes.bytes, stats.reads.requests, stats.errors), (Bytes(5), 1, 0));
    }

    #[test]
    fn a_fault_keeps_a_write_from_the_image_until_it_is_healed() {
        let disk = disk();
        disk.change_faults(|f| f.range(0..4096, Errno::IO));
        assert_eq!(write(&disk, 0, b"lost"), Err(Errno::IO));
        disk.change_faults(|f| *f = Faults::default());
        assert_eq!(read(&disk, 0, 4).unwrap(), [0; 4]);
        assert_eq!(disk.stats().errors, 1);
    }

    #[test]
    fn without_power_everything_fails_at_once() {
        let disk = disk();
        write(&disk, 0, b"lost").unwrap();
        assert_eq!(disk.cut().unwrap(), Bytes(4));
        assert_eq!(read(&disk, 0, 4), Err(Errno::IO));
        assert_eq!((disk.stats().lost, disk.stats().errors), (Bytes(4), 1));
    }
}

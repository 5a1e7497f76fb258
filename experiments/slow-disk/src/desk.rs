//! Where model, image and faults meet: what the answer to a request is, and when it is due.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use eke_model::units::{Bytes, Nanos};
use rustix::io::Errno;

use super::faults::Faults;
use super::model::{Kind, Model, Request};
use super::stats::Stats;
use super::store::Store;

/// Bytes for a read, nothing for the others, or the error that the kernel is told.
pub(super) type Answer = Result<Vec<u8>, Errno>;

/// A disk's state; the server and the owner share it.
#[derive(Debug)]
pub(super) struct Desk {
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
    /// By how much the last answer was too late.
    behind: Duration,
    /// Is the next request taken to have been made that much earlier?
    makes_up: bool,
}

/// More is not this machine's scheduler but somebody who stopped it (a debugger, a suspend).
const MOST_BEHIND: Duration = Duration::from_millis(50);

impl Desk {
    /// A disk with power and without faults.
    pub(super) fn new(model: Model, store: Store) -> Self {
        let state = State {
            model,
            store,
            faults: Faults::default(),
            stats: Stats::default(),
            powered: true,
            behind: Duration::ZERO,
            makes_up: false,
        };
        Self { epoch: Instant::now(), state: Mutex::new(state) }
    }

    /// Serves a request that arrives now; if the last answer came too late, so did this request, which waited for it.
    /// An answer without power is due at once.
    pub(super) fn serve(&self, request: &Request, write: &[u8]) -> (Instant, Answer) {
        let now = Nanos::from(self.epoch.elapsed());
        let mut state = self.state();
        if !state.powered {
            state.stats.errors += 1;
            return (Instant::now(), Err(Errno::IO));
        }
        let asked = Nanos(now.0.saturating_sub(Nanos::from(state.behind).0));
        let due = state.model.serve(asked, request);
        let answer = state.answer(request, write);
        match answer {
            Ok(_) => state.stats.count(request, Nanos(due.0.saturating_sub(now.0))),
            Err(_) => state.stats.errors += 1,
        }
        (self.epoch + Duration::from_nanos(due.0), answer)
    }

    /// Another model from now on, and answers that were late are made up for; the counters begin again.
    pub(super) fn begin(&self, model: Model) {
        let mut state = self.state();
        state.model = model;
        state.stats = Stats::default();
        state.makes_up = true;
    }

    /// See [`Faults`].
    pub(super) fn change_faults(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut self.state().faults);
    }

    /// No power: what was not flushed is taken back, every request fails. Says how many written bytes that cost.
    pub(super) fn cut(&self) -> std::io::Result<Bytes> {
        let mut state = self.state();
        state.powered = false;
        let lost = state.store.cut()?;
        state.stats.lost = state.stats.lost + lost;
        Ok(lost)
    }

    /// No power, nothing lost.
    pub(super) fn turn_off(&self) {
        self.state().powered = false;
    }

    /// An answer was this much later than due.
    pub(super) fn note_late(&self, time: Duration) {
        let mut state = self.state();
        if state.makes_up {
            state.behind = time.min(MOST_BEHIND);
        }
        state.stats.late = Nanos(state.stats.late.0.saturating_add(Nanos::from(time).0));
    }

    /// Everything so far.
    pub(super) fn stats(&self) -> Stats {
        self.state().stats
    }

    /// A thread that panicked left counters, not half-done work.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn answer(&mut self, request: &Request, write: &[u8]) -> Answer {
        if let Some(errno) = self.faults.strike(request) {
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

    fn desk() -> Desk {
        let image = tempfile::tempfile().unwrap();
        image.set_len(1 << 20).unwrap();
        let size = Bytes::mib(1);
        Desk::new(Model::new(Profile::plain(), size, Nanos(0)), Store::new(image, size, size))
    }

    fn write(desk: &Desk, offset: u64, bytes: &[u8]) -> Answer {
        let length = bytes.len() as u64;
        desk.serve(&Request { kind: Kind::Write, offset, length }, bytes).1
    }

    fn read(desk: &Desk, offset: u64, length: u64) -> Answer {
        desk.serve(&Request { kind: Kind::Read, offset, length }, &[]).1
    }

    #[test]
    fn what_is_written_is_read_and_counted() {
        let desk = desk();
        write(&desk, 100, b"hello").unwrap();
        assert_eq!(read(&desk, 100, 5).unwrap(), b"hello");
        let stats = desk.stats();
        assert_eq!((stats.writes.bytes, stats.reads.requests, stats.errors), (Bytes(5), 1, 0));
    }

    #[test]
    fn a_fault_keeps_a_write_from_the_image_until_it_is_healed() {
        let desk = desk();
        desk.change_faults(|f| f.range(0..4096, Errno::IO));
        assert_eq!(write(&desk, 0, b"lost"), Err(Errno::IO));
        desk.change_faults(|f| *f = Faults::default());
        assert_eq!(read(&desk, 0, 4).unwrap(), [0; 4]);
        assert_eq!(desk.stats().errors, 1);
    }

    #[test]
    fn without_power_everything_fails_at_once() {
        let desk = desk();
        write(&desk, 0, b"lost").unwrap();
        assert_eq!(desk.cut().unwrap(), Bytes(4));
        assert_eq!(read(&desk, 0, 4), Err(Errno::IO));
        assert_eq!((desk.stats().lost, desk.stats().errors), (Bytes(4), 1));
    }
}

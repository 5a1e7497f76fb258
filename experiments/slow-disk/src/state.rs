//! The state of a disk: engine, image and faults together give the answer to a request, and the time at which it is due.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use eke_model::units::{Bytes, Nanos};
use rustix::io::Errno;

use super::due::{Batch, Due};
use super::engine::Engine;
use super::faults::Faults;
use super::model::{Kind, Request};
use super::stats::Stats;
use super::store::Store;

/// Data for a read, nothing for other requests, or the error for the kernel.
pub(super) type Answer = Result<Vec<u8>, Errno>;
/// Sends an answer to the kernel.
pub(super) type Send = Box<dyn FnOnce(Answer) + std::marker::Send>;

/// The state of a disk, shared by the server and the owner.
#[derive(Debug)]
pub(super) struct DiskState {
    epoch: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    engine: Engine,
    /// Requests that the engine has, by number.
    pending: BTreeMap<u64, Pending>,
    /// The number of the next request.
    next: u64,
    store: Store,
    faults: Faults,
    stats: Stats,
    powered: bool,
    /// The lateness of the last answer.
    lateness: Duration,
    /// Whether to compensate for it: the next request then counts as made that much earlier.
    compensates: bool,
}

struct Pending {
    arrived: Nanos,
    request: Request,
    answer: Answer,
    send: Send,
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.request.fmt(f)
    }
}

/// A longer delay is not the scheduler: somebody stopped this machine (a debugger, a suspend).
const MOST_LATENESS: Duration = Duration::from_millis(50);

impl DiskState {
    /// A disk with power and without faults.
    pub(super) fn new(engine: Engine, store: Store) -> Self {
        let state = State {
            engine,
            pending: BTreeMap::new(),
            next: 0,
            store,
            faults: Faults::default(),
            stats: Stats::default(),
            powered: true,
            lateness: Duration::ZERO,
            compensates: false,
        };
        Self { epoch: Instant::now(), state: Mutex::new(state) }
    }

    /// Takes a request that arrives now. If the last answer was late, so is this request, which waited for it. Without power, an answer is due
    /// at once. The image has a write from now on, whenever it is answered.
    pub(super) fn take(&self, request: &Request, write: &[u8], send: Send) -> Batch {
        let now = Nanos::from(self.epoch.elapsed());
        let mut state = self.state();
        if !state.powered {
            state.stats.errors += 1;
            let wakes = state.engine.wakes().map(|wakes| self.instant(wakes));
            let due = Due { at: Instant::now(), send: Box::new(|| send(Err(Errno::IO))) };
            return Batch { due: vec![due], wakes };
        }
        let asked = Nanos(now.0.saturating_sub(Nanos::from(state.lateness).0));
        let answer = state.answer(request, write);
        let id = state.next;
        state.next += 1;
        state.pending.insert(id, Pending { arrived: now, request: *request, answer, send });
        let answers = state.engine.arrive(asked, id, request);
        self.batch(&mut state, answers)
    }

    /// Lets the disk go on until now.
    pub(super) fn advance(&self) -> Batch {
        let now = Nanos::from(self.epoch.elapsed());
        let mut state = self.state();
        let answers = state.engine.advance(now);
        self.batch(&mut state, answers)
    }

    fn batch(&self, state: &mut State, answers: Vec<(u64, Nanos)>) -> Batch {
        let due = answers.into_iter().filter_map(|(id, due)| {
            let Pending { arrived, request, answer, send } = state.pending.remove(&id)?;
            match answer {
                Ok(_) => state.stats.count(&request, Nanos(due.0.saturating_sub(arrived.0))),
                Err(_) => state.stats.errors += 1,
            }
            Some(Due { at: self.instant(due), send: Box::new(|| send(answer)) })
        });
        let due = due.collect();
        Batch { due, wakes: state.engine.wakes().map(|wakes| self.instant(wakes)) }
    }

    fn instant(&self, at: Nanos) -> Instant {
        self.epoch + Duration::from_nanos(at.0)
    }

    /// Starts with a new engine, compensates for late answers, and resets the counters. No request may be under way.
    pub(super) fn begin(&self, engine: Engine) {
        let mut state = self.state();
        state.engine = engine;
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
    use std::sync::mpsc::channel;

    use super::*;
    use crate::profile::Profile;

    fn disk() -> DiskState {
        let image = tempfile::tempfile().unwrap();
        image.set_len(1 << 20).unwrap();
        let size = Bytes::mib(1);
        DiskState::new(Engine::new(&Profile::plain(), size, Nanos(0), size), Store::new(image, size, size))
    }

    /// The answer, when it is due.
    fn answer(disk: &DiskState, kind: Kind, offset: u64, length: u64, write: &[u8]) -> Answer {
        let (sender, receiver) = channel();
        let send = Box::new(move |answer| sender.send(answer).unwrap());
        disk.take(&Request { kind, offset, length }, write, send)
            .due
            .into_iter()
            .for_each(|due| (due.send)());
        receiver.recv().unwrap()
    }

    fn write(disk: &DiskState, offset: u64, bytes: &[u8]) -> Answer {
        answer(disk, Kind::Write, offset, bytes.len() as u64, bytes)
    }

    fn read(disk: &DiskState, offset: u64, length: u64) -> Answer {
        answer(disk, Kind::Read, offset, length, &[])
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

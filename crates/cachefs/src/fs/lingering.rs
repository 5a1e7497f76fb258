//! Files that count as open for a moment after close(2).
//!
//! Programs open the same files again and again: a web server its pages, a compiler its headers. Closing the backing file and its
//! registration for passthrough at each close costs more system calls than all the rest of an open. So the last close of a file that was
//! open for reading is carried out [`IDLE`] later, if nobody opens it before. Until then an open finds all as one beside an open file does.
//!
//! It ends at once if the file loses a name, is opened for writing or truncated, or the kernel forgets it. A user of the backing directory
//! can still notice it: he gets no write lease (`F_SETLEASE`) meanwhile. The ledger has the close at once, so the next worker finds the
//! file closed.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::sync::lock;

/// A file is closed this long after its last close, within a second.
const IDLE: Duration = Duration::from_secs(2);
/// Whether a file uses passthrough is chosen when it is not open, so that comes at least this often.
const LONGEST: Duration = Duration::from_secs(10);

/// The files by number, each with what its close needs.
#[derive(Debug)]
pub(super) struct Lingering<T> {
    most: usize,
    files: Mutex<Files<T>>,
}

#[derive(Debug)]
struct Files<T> {
    by_number: HashMap<u64, LingeringFile<T>>,
    /// In the order of their first close; some may have ended since.
    order: VecDeque<(u64, Instant)>,
}

#[derive(Debug)]
struct LingeringFile<T> {
    file: T,
    since: Instant,
    closed: Instant,
}

impl<T> Lingering<T> {
    /// At most `most` files; 0: none.
    pub fn new(most: usize) -> Self {
        let files = Files { by_number: HashMap::new(), order: VecDeque::new() };
        Self { most, files: Mutex::new(files) }
    }

    /// True if files linger at all.
    pub fn is_on(&self) -> bool {
        self.most > 0
    }

    /// Keeps a file that does not linger yet. Returns one that has to be closed for it.
    pub fn put(&self, number: u64, file: T, now: Instant) -> Option<T> {
        let mut files = lock(&self.files);
        let oldest = if files.by_number.len() >= self.most { files.take_oldest() } else { None };
        files.order.push_back((number, now));
        let replaced = files.by_number.insert(number, LingeringFile { file, since: now, closed: now });
        debug_assert!(replaced.is_none(), "it is open, and lingers only once");
        oldest
    }

    /// A file was closed, and may linger since before. Returns it if that has been long enough.
    pub fn closed_again(&self, number: u64, now: Instant) -> Option<T> {
        let mut files = lock(&self.files);
        let lingering = files.by_number.get_mut(&number)?;
        lingering.closed = now;
        if now.saturating_duration_since(lingering.since) < LONGEST {
            return None;
        }
        files.take(number)
    }

    /// Takes a file that is to be closed now, if it lingers.
    pub fn take(&self, number: u64) -> Option<T> {
        if self.is_on() { lock(&self.files).take(number) } else { None }
    }

    /// True if this file lingers.
    pub fn has(&self, number: u64) -> bool {
        self.is_on() && lock(&self.files).by_number.contains_key(&number)
    }

    /// Takes the files whose time is over. Call it every second.
    pub fn expired(&self, now: Instant) -> Vec<T> {
        let mut files = lock(&self.files);
        let idle = |file: &LingeringFile<T>| now.saturating_duration_since(file.closed) >= IDLE;
        let over: Vec<u64> =
            files.by_number.iter().filter(|(_, file)| idle(file)).map(|(number, _)| *number).collect();
        let taken = over.into_iter().filter_map(|number| files.take(number)).collect();
        files.forget_ended();
        taken
    }
}

impl<T> Files<T> {
    fn take(&mut self, number: u64) -> Option<T> {
        self.by_number.remove(&number).map(|lingering| lingering.file)
    }

    fn take_oldest(&mut self) -> Option<T> {
        while let Some((number, since)) = self.order.pop_front() {
            if self.by_number.get(&number).is_some_and(|file| file.since == since) {
                return self.take(number);
            }
        }
        None
    }

    fn forget_ended(&mut self) {
        let Self { by_number, order } = self;
        order.retain(|(number, since)| by_number.get(number).is_some_and(|file| file.since == *since));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: Instant, ms: u64) -> Instant {
        start + Duration::from_millis(ms)
    }

    #[test]
    fn a_file_is_closed_two_seconds_after_its_last_close() {
        let (files, start) = (Lingering::new(8), Instant::now());
        assert_eq!(files.put(1, 'a', start), None);
        assert_eq!(files.expired(at(start, 1900)), []);
        assert_eq!(files.closed_again(1, at(start, 1900)), None);
        assert_eq!(files.expired(at(start, 3800)), []);
        assert_eq!(files.expired(at(start, 3900)), ['a']);
        assert_eq!(files.closed_again(1, at(start, 3900)), None, "it does not linger");
    }

    #[test]
    fn a_file_that_is_used_all_the_time_is_closed_every_ten_seconds() {
        let (files, start) = (Lingering::new(8), Instant::now());
        files.put(1, 'a', start);
        assert!((1..100).all(|tenths| files.closed_again(1, at(start, tenths * 100)).is_none()));
        assert_eq!(files.closed_again(1, at(start, 10_000)), Some('a'));
    }

    #[test]
    fn the_oldest_makes_room() {
        let (files, start) = (Lingering::new(2), Instant::now());
        assert!(
            [(1, 'a'), (2, 'b')].into_iter().all(|(number, file)| files.put(number, file, start).is_none())
        );
        assert_eq!(files.take(1), Some('a'));
        assert_eq!(files.put(1, 'c', at(start, 1)), None, "there was room");
        assert_eq!(files.put(3, 'd', at(start, 2)), Some('b'), "1 is younger since it lingers again");
        assert_eq!(files.put(4, 'e', at(start, 3)), Some('c'));
    }
}

#[cfg(test)]
#[path = "lingering_tests.rs"]
mod with_files;

//! A thread that opens files and reads them: the only kind that may hang.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::Haste;
use super::extents::extents;
use super::jobs::Job;
use super::lanes::Lane;
use super::left_behind::LeftBehind;
use super::open::{Opened, Refusal, open};
use super::order::Piece;
use super::queue::{Number, Outcome, Queue};
use super::read::{Sink, list};
use super::resident::{missing_bytes, pages_in};
use crate::io_class::{self, Class};
use crate::pages::PAGE_BYTES;

/// Enough for a read; the kernel gives what is used.
const STACK_BYTES: usize = 256 << 10;
/// Files that all workers of a lane together keep open: half of what a process may have unless it asks for more.
const MOST_OPEN: usize = 512;

/// What a worker is given.
#[derive(Debug, Clone)]
pub(super) struct Worker {
    pub(super) number: Number,
    pub(super) queue: Arc<Queue>,
    pub(super) left_behind: Arc<LeftBehind>,
    /// The directory that paths begin at.
    pub(super) root: PathBuf,
    pub(super) haste: Haste,
}

impl Worker {
    /// Starts the thread. Nobody ever waits for its end.
    pub(super) fn start(self) -> io::Result<()> {
        let thread = std::thread::Builder::new().name("fetcher".to_owned()).stack_size(STACK_BYTES);
        thread.spawn(move || self.run()).map(drop)
    }

    fn run(self) {
        self.queue.is_thread(self.number, rustix::thread::gettid().as_raw_nonzero().get());
        let class = if self.haste == Haste::Ahead { Class::Idle } else { Class::Normal };
        if let Err(e) = io_class::set(class) {
            self.queue.note(&format!("the I/O class of its threads is the program's: {e}"));
        }
        let room = MOST_OPEN / self.queue.lane.figures.way.streams.max(1);
        if self.works(room) {
            self.queue.goes();
        } else {
            self.left_behind.came_back();
        }
    }

    /// Works until there is nothing to do. `false` if it was left behind meanwhile.
    fn works(&self, room: usize) -> bool {
        let mut hands = Hands { files: Files::new(&self.root, room), sink: Sink::default() };
        while let Some(job) = self.queue.take(self.number) {
            let outcome = hands.work(&self.queue.lane, job);
            if !self.queue.done(self.number, job, outcome) {
                return false;
            }
        }
        true
    }
}

/// What it works with.
struct Hands {
    files: Files,
    sink: Sink,
}

impl Hands {
    fn work(&mut self, lane: &Lane, job: Job) -> Outcome {
        let opened = match self.files.get(lane, job.want()) {
            Ok(opened) => opened,
            Err(refusal) => return Outcome::Refused(refusal),
        };
        match job {
            Job::List(_) => listed(opened),
            Job::Locate(_) => Outcome::Located(extents(&opened.fd, opened.bytes).ok()),
            Job::Read(piece) => read(opened, piece, &mut self.sink),
        }
    }
}

fn listed(opened: &Opened) -> Outcome {
    match list(&opened.fd) {
        Ok(_) => Outcome::Listed,
        Err(e) => Outcome::Refused(Refusal::now(format!("it cannot be listed: {e}"))),
    }
}

/// Reads what of a piece is not there. Where it cannot be told what is there, all is read, and counts as fetched.
fn read(opened: &Opened, piece: Piece, sink: &mut Sink) -> Outcome {
    let asked = pages_in(piece.offset, piece.bytes, opened.bytes) * PAGE_BYTES;
    let missing = missing_bytes(&opened.fd, piece.offset, piece.bytes, opened.bytes).unwrap_or(asked);
    let there = asked - missing;
    if missing == 0 {
        return Outcome::Read { fetched: 0, there };
    }
    match sink.read(&opened.fd, piece.offset, piece.bytes) {
        Ok(_) => Outcome::Read { fetched: missing, there },
        Err(e) => {
            // Pages that failed are in the cache, and look as if they were there. What was read before may have been there.
            let fetched = e.done.saturating_sub(there).min(missing) / PAGE_BYTES * PAGE_BYTES;
            let why = format!("{} bytes at {} cannot be read: {e}", piece.bytes, piece.offset);
            Outcome::Failed { why, fetched, there, left: missing - fetched }
        }
    }
}

/// Files that are open; the oldest is closed for a new one.
struct Files {
    root: PathBuf,
    top: Option<OwnedFd>,
    open: HashMap<usize, Opened>,
    order: VecDeque<usize>,
    room: usize,
}

impl Files {
    fn new(root: &std::path::Path, room: usize) -> Self {
        Self {
            root: root.to_owned(),
            top: None,
            open: HashMap::new(),
            order: VecDeque::new(),
            room: room.max(1),
        }
    }

    fn get(&mut self, lane: &Lane, want: usize) -> Result<&Opened, Refusal> {
        if !self.open.contains_key(&want) {
            let opened = open(self.top().map_err(Refusal::now)?, &lane.wants[want].want)?;
            self.keep(want, opened);
        }
        self.open.get(&want).ok_or_else(|| Refusal::now("it is not open".to_owned()))
    }

    fn keep(&mut self, want: usize, opened: Opened) {
        if self.order.len() >= self.room {
            let oldest = self.order.pop_front();
            oldest.map(|oldest| self.open.remove(&oldest));
        }
        self.order.push_back(want);
        self.open.insert(want, opened);
    }

    fn top(&mut self) -> Result<&OwnedFd, String> {
        let top = match self.top.take() {
            Some(top) => top,
            None => {
                openat(CWD, &self.root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
                    .map_err(|e| {
                        format!("{} cannot be opened: {}", self.root.display(), io::Error::from(e))
                    })?
            }
        };
        Ok(self.top.insert(top))
    }
}

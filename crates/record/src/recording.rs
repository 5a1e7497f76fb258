//! The recorder: a row at each interval until the subject ends, written in batches.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eke_linux::Root;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::error::Result;
use crate::machine;
use crate::marks::{Inbox, now_ns};
use crate::row::{Mark, Row};
use crate::sampler::MachineRows;
use crate::store::Store;
use crate::subject::{Running, Subject, end_of};
use crate::tree::Tree;

const BETWEEN_WRITES_MS: u64 = 1000;

/// What to record, how, and to which file.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The subject.
    pub subject: Subject,
    /// The time between two samples.
    pub every: Duration,
    /// The longest duration; a command is not ended by it.
    pub at_most: Option<Duration>,
    /// The file.
    pub output: PathBuf,
    /// Replace an old file.
    pub overwrite: bool,
}

/// The summary of a recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ended {
    /// The file.
    pub file: PathBuf,
    /// The number of samples.
    pub samples: u64,
    /// The number of named steps.
    pub marks: u64,
    /// Its duration.
    pub seconds: f64,
    /// The recorder's own CPU time in percent of one CPU.
    pub cost_percent: f64,
    /// How the subject ended.
    pub end: String,
    /// The command's exit status (128 plus the number of the signal that killed it).
    pub exit_status: Option<u8>,
}

/// Records until the subject ends, the time is over or `stop` is set. Without an inbox steps cannot be named.
///
/// # Errors
/// Something cannot be read, made or started: then no file is left. Or the file cannot be written (no space): what is in it stays, and the
/// command runs to its end.
pub fn record(root: &Root, spec: &Spec, inbox: Option<Inbox>, stop: &AtomicBool) -> Result<Ended> {
    spec.subject.check()?;
    let sampler = MachineRows::open(root)?;
    let tree = match spec.subject {
        Subject::Process(pid) => Some(Tree::new(root, pid)?),
        _ => None,
    };
    let store = Store::create(&spec.output, spec.overwrite)?;
    let mut recorder = Recorder::new(sampler, tree, inbox, store);
    match recorder.begin(root, spec) {
        Ok(()) => {}
        Err(e) => {
            recorder.store.discard();
            return Err(e);
        }
    }
    let result = recorder.go_on(spec, stop).and_then(|()| recorder.end());
    if let (Err(_), Some(command)) = (&result, &mut recorder.command) {
        command.wait();
    }
    result
}

struct Recorder {
    sampler: MachineRows,
    tree: Option<Tree>,
    inbox: Option<Inbox>,
    store: Store,
    command: Option<Running>,
    end_of_subject: Option<OwnedFd>,
    subject_ended: bool,
    start_ns: u64,
    first: Row,
    rows: Vec<Row>,
    marks: Vec<Mark>,
    written_ms: u64,
    counts: (u64, u64),
    last_ms: Option<u64>,
}

impl Recorder {
    fn new(sampler: MachineRows, tree: Option<Tree>, inbox: Option<Inbox>, store: Store) -> Self {
        Self {
            sampler,
            tree,
            inbox,
            store,
            command: None,
            end_of_subject: None,
            subject_ended: false,
            start_ns: now_ns(),
            first: Row::default(),
            rows: Vec::new(),
            marks: Vec::new(),
            written_ms: 0,
            counts: (0, 0),
            last_ms: None,
        }
    }

    /// Notes the machine, takes the first sample, starts the command.
    fn begin(&mut self, root: &Root, spec: &Spec) -> Result<()> {
        self.store.note(&notes(root, spec))?;
        self.start_ns = now_ns();
        self.first = self.sampler.read(0)?;
        if let Some(tree) = &mut self.tree {
            tree.read_into(&mut self.first);
        }
        self.keep(self.first);
        if let Subject::Command { argv, to_stderr } = &spec.subject {
            let command = Running::start(argv, *to_stderr, self.inbox.as_ref().map(Inbox::path))?;
            self.tree = Tree::new(root, command.pid()).ok();
            self.end_of_subject = end_of(command.pid());
            self.command = Some(command);
        } else if let Subject::Process(pid) = spec.subject {
            self.end_of_subject = end_of(pid);
        }
        Ok(())
    }

    fn go_on(&mut self, spec: &Spec, stop: &AtomicBool) -> Result<()> {
        let every = ms(spec.every).max(1);
        let mut next = every;
        loop {
            self.wait(spec.at_most.map_or(next, |most| next.min(ms(most))));
            let over = self.is_over(spec, stop.load(Ordering::Relaxed));
            let now = self.now_ms();
            if over || now >= next {
                self.sample(now)?;
                // missed samples are skipped
                next = (next + every).max(now + 1);
            }
            if over {
                return Ok(());
            }
            if now >= self.written_ms + BETWEEN_WRITES_MS {
                self.write(now)?;
            }
        }
    }

    fn end(&mut self) -> Result<Ended> {
        self.write(self.now_ms())?;
        let (end, exit_status) = match &mut self.command {
            Some(command) => command.end(),
            None => ("ended".into(), None),
        };
        let ms = self.now_ms();
        let cpu_ms = own_cpu_ms();
        let cost_percent = if ms > 0 { 100.0 * cpu_ms / ms as f64 } else { 0.0 };
        let notes = [
            ("ended_after_ms", ms.to_string()),
            ("end", end.clone()),
            ("recorder_cpu_ms", format!("{cpu_ms:.1}")),
            ("recorder_cpu_percent", format!("{cost_percent:.3}")),
        ];
        self.store.note(&notes)?;
        let (samples, marks) = self.counts;
        let file = self.store.path().to_owned();
        Ok(Ended { file, samples, marks, seconds: ms as f64 / 1e3, cost_percent, end, exit_status })
    }

    fn sample(&mut self, now_ms: u64) -> Result<()> {
        if self.last_ms.is_some_and(|last| last >= now_ms) {
            return Ok(());
        }
        let mut row = self.sampler.read(now_ms)?;
        if let Some(tree) = &mut self.tree {
            tree.read_into(&mut row);
        }
        self.keep(row);
        Ok(())
    }

    fn keep(&mut self, row: Row) {
        self.last_ms = Some(row.time_ms);
        self.counts.0 += 1;
        self.rows.push(row.since(&self.first));
    }

    fn write(&mut self, now_ms: u64) -> Result<()> {
        self.take_marks();
        self.store.write(&self.rows, &self.marks)?;
        self.rows.clear();
        self.marks.clear();
        self.written_ms = now_ms;
        Ok(())
    }

    /// A mark has its sender's time, limited to the time from the start to now.
    fn take_marks(&mut self) {
        let now_ms = self.now_ms();
        for (said_ns, name) in self.inbox.as_ref().map(Inbox::drain).unwrap_or_default() {
            let time_ms = (said_ns.saturating_sub(self.start_ns) / 1_000_000).min(now_ms);
            self.counts.1 += 1;
            self.marks.push(Mark { time_ms, name });
        }
    }

    fn is_over(&mut self, spec: &Spec, stop: bool) -> bool {
        if let Some(command) = &mut self.command {
            return command.is_over(stop);
        }
        let ended = self.subject_ended || self.tree.as_ref().is_some_and(Tree::is_over);
        stop || ended || spec.at_most.is_some_and(|most| self.now_ms() >= ms(most))
    }

    /// Waits for the next sample, a mark, the subject's end or a signal.
    fn wait(&mut self, next_ms: u64) {
        let left_ns = (self.start_ns + next_ms * 1_000_000).saturating_sub(now_ns());
        let timeout = Timespec {
            tv_sec: i64::try_from(left_ns / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: (left_ns % 1_000_000_000) as _,
        };
        let end = self.end_of_subject.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN));
        let marks = self.inbox.as_ref().map(|inbox| PollFd::new(inbox.socket(), PollFlags::IN));
        let mut watched: Vec<PollFd<'_>> = end.into_iter().chain(marks).collect();
        let _ = poll(&mut watched, Some(&timeout));
        let has_ended = watched.first().is_some_and(|fd| !fd.revents().is_empty());
        self.subject_ended = has_ended && self.end_of_subject.is_some();
        self.take_marks();
    }

    fn now_ms(&self) -> u64 {
        now_ns().saturating_sub(self.start_ns) / 1_000_000
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX / 2_000_000)
}

/// The CPU time of this process since its start.
fn own_cpu_ms() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

fn notes(root: &Root, spec: &Spec) -> Vec<(&'static str, String)> {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut notes = BTreeMap::from([
        ("eke_version", env!("CARGO_PKG_VERSION").to_owned()),
        ("schema_version", crate::store::SCHEMA.to_string()),
        ("started_unix_ms", since_1970.as_millis().to_string()),
        ("every_ms", spec.every.as_millis().to_string()),
        ("kind", spec.subject.kind().to_owned()),
        ("subject", spec.subject.name(root)),
    ]);
    notes.extend(machine::facts(root));
    notes.into_iter().collect()
}

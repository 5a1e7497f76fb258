//! Adds readings to the history, and writes it to its file at intervals.

use crate::history::History;
use crate::history::file::HistoryFile;
use crate::history::series::{Step, values};
use crate::view::View;

/// The interval of writes to the file, so that a sleeping disk is rarely woken.
pub const SAVE_EVERY_S: u64 = 120;

/// The time of a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moment {
    /// Seconds since 1970.
    pub unix_s: u64,
    /// Milliseconds of the monotonic clock.
    pub monotonic_ms: u64,
}

/// The history and its file.
#[derive(Debug, Default)]
pub struct Recorder {
    history: History,
    file: Option<HistoryFile>,
    before: Option<(Moment, View)>,
    saved_ms: Option<u64>,
    trouble: Option<String>,
}

impl Recorder {
    /// A recorder with a history and its file. Without a file the history is in memory only.
    pub fn new(history: History, file: Option<HistoryFile>) -> Self {
        Self { history, file, ..Self::default() }
    }

    /// Adds a reading.
    pub fn note(&mut self, now: Moment, view: &View) {
        let before = self.before.as_ref();
        let ms = before.map_or(0, |(then, _)| now.monotonic_ms.saturating_sub(then.monotonic_ms));
        let step = Step { now: view, before: before.map(|(_, view)| view), seconds: ms as f64 / 1e3 };
        self.history.push(now.unix_s, &values(&step));
        self.before = Some((now, view.clone()));
        let saved_ms = *self.saved_ms.get_or_insert(now.monotonic_ms);
        if now.monotonic_ms.saturating_sub(saved_ms) >= SAVE_EVERY_S * 1_000 {
            self.save(now);
        }
    }

    /// Writes the new points.
    pub fn save(&mut self, now: Moment) {
        self.saved_ms = Some(now.monotonic_ms);
        let Some(file) = &mut self.file else { return };
        self.trouble = file.save(&mut self.history, now.unix_s).err().map(|e| e.to_string());
    }

    /// The history.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Why the last write failed.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }
}

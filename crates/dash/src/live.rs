//! The thread that reads and records, and its state shared with the server.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::value::RawValue;

use crate::history::series::SERIES;
use crate::history::{SPANS, Span};
use crate::recorder::{Moment, Recorder};
use crate::view::{Source, View};

/// The interval while a page is open.
const WATCHED: Duration = Duration::from_secs(1);
/// The interval otherwise: the step of the hour.
const UNWATCHED: Duration = Duration::from_secs(5);
/// A page counts as open for this time after a request: it sends one each second, in a background tab one every few seconds.
const OPEN_FOR: Duration = Duration::from_secs(4);

/// The clock, as an argument.
pub type Clock = fn() -> Moment;

/// What the server shows.
#[derive(Debug)]
pub struct Live {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug)]
struct State {
    /// The newest view as JSON, or the error as a sentence; `None` before the first.
    view: Option<Result<Box<RawValue>, String>>,
    recorder: Recorder,
    requested: Option<Instant>,
    stop: bool,
}

/// The answer to each request of the page.
#[derive(Debug, Serialize)]
pub struct Now {
    /// The view; `None` if it cannot be read, or was not read yet.
    pub view: Option<Box<RawValue>>,
    /// Why it cannot be read.
    pub why: Option<String>,
    /// The points that the page does not have yet.
    pub points: Points,
}

/// Points of a span, by column.
#[derive(Debug, Serialize)]
pub struct Points {
    /// The span.
    pub span: &'static str,
    /// Seconds between two points.
    pub step_s: u64,
    /// Seconds that are kept.
    pub keep_s: u64,
    /// The newest time; 0 without points. It goes back if the clock does.
    pub last_s: u64,
    /// The names of the columns.
    pub keys: [&'static str; SERIES.len()],
    /// Times, in seconds since 1970.
    pub at: Vec<u64>,
    /// Values of each time, by column.
    pub rows: Vec<Vec<Option<f64>>>,
}

/// Drop ends the thread and waits until the history is written.
#[derive(Debug)]
pub struct Running {
    live: Arc<Live>,
    thread: Option<JoinHandle<()>>,
}

impl Live {
    /// Starts the thread.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(source: Box<dyn Source>, recorder: Recorder, clock: Clock) -> std::io::Result<Running> {
        let state = State { view: None, recorder, requested: None, stop: false };
        let live = Arc::new(Self { state: Mutex::new(state), wake: Condvar::new() });
        let of_thread = Arc::clone(&live);
        let thread = std::thread::Builder::new().name("recorder".into());
        let thread = thread.spawn(move || of_thread.record(source, clock))?;
        Ok(Running { live, thread: Some(thread) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, mut source: Box<dyn Source>, clock: Clock) {
        loop {
            let began = Instant::now();
            let view = source.view();
            let mut state = self.lock();
            state.take(view, clock());
            while !state.stop && began.elapsed() < state.period() {
                let rest = state.period().saturating_sub(began.elapsed());
                state = self.wake.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0;
            }
            if state.stop {
                return state.recorder.save(clock());
            }
        }
    }

    /// The view, and the points of a span after a time.
    pub fn now(&self, span: usize, after_s: u64) -> Now {
        let mut state = self.lock();
        state.requested = Some(Instant::now());
        self.wake.notify_all();
        let (view, why) = match &state.view {
            Some(Ok(view)) => (Some(view.clone()), None),
            Some(Err(why)) => (None, Some(why.clone())),
            None => (None, None),
        };
        Now { view, why, points: Points::of(&state.recorder, span, after_s) }
    }
}

impl State {
    fn take(&mut self, view: Result<View, String>, now: Moment) {
        let text = view.and_then(|mut view| {
            self.recorder.note(now, &view);
            view.notes.extend(self.recorder.trouble().map(str::to_owned));
            serde_json::value::to_raw_value(&view).map_err(|e| e.to_string())
        });
        self.view = Some(text);
    }

    fn period(&self) -> Duration {
        let watched = self.requested.is_some_and(|at| at.elapsed() < OPEN_FOR);
        if watched { WATCHED } else { UNWATCHED }
    }
}

impl Points {
    fn of(recorder: &Recorder, span: usize, after_s: u64) -> Self {
        let Span { name, step_s, keep_s, .. } = SPANS[span.min(SPANS.len() - 1)];
        let (mut at, mut rows) = (Vec::new(), Vec::new());
        for point in recorder.history().after(span, after_s) {
            at.push(point.at_s);
            rows.push(point.values.iter().map(|v| v.map(short)).collect());
        }
        let last_s = recorder.history().after(span, 0).last().map_or(0, |point| point.at_s);
        Self { span: name, step_s, keep_s, last_s, keys: SERIES.map(|s| s.key), at, rows }
    }
}

/// Rounds to thousandths: no plot shows more.
fn short(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

impl Running {
    /// The handle for the server.
    pub fn live(&self) -> Arc<Live> {
        Arc::clone(&self.live)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.live.lock().stop = true;
        self.live.wake.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

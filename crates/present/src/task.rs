//! What a command does that takes longer than a moment: how far it is and what is left, on a terminal only.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use eke_model::text::one_line;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::progress::time;

/// What is over sooner shows nothing.
const SHOWN_AFTER: Duration = Duration::from_secs(1);
const REDRAWN_EVERY: Duration = Duration::from_millis(250);
/// A rate from less of the whole than this is no rate.
const RATE_FROM: f64 = 0.02;

/// How far it is: done of the whole, in any unit. It is asked four times a second, with the time since the beginning.
pub type Far = Box<dyn FnMut(Duration) -> Option<(u64, u64)> + Send>;

/// Nobody knows how far; how long it has taken is shown.
pub fn unknown() -> Far {
    Box::new(|_| None)
}

/// What takes about this long. Where it takes longer, nobody knows how far it is.
pub fn expected(whole: Duration) -> Far {
    let ms = |time: Duration| time.as_millis() as u64;
    Box::new(move |elapsed| (elapsed < whole).then(|| (ms(elapsed), ms(whole))))
}

/// A progress counter that threads share: done and whole.
#[derive(Debug, Clone, Default)]
pub struct Counter(Arc<[AtomicU64; 2]>);

impl Counter {
    /// Sets both.
    pub fn set(&self, done: u64, whole: u64) {
        self.0[0].store(done, Ordering::Relaxed);
        self.0[1].store(whole, Ordering::Relaxed);
    }

    /// For [`Task::begin`].
    pub fn far(&self) -> Far {
        let Self(counts) = self.clone();
        Box::new(move |_| {
            let [done, whole] = [0, 1].map(|i| counts[i].load(Ordering::Relaxed));
            (whole > 0).then_some((done, whole))
        })
    }
}

/// A task that is under way until this is dropped; then its line is gone.
pub struct Task {
    thread: Option<(Sender<String>, JoinHandle<()>)>,
}

impl Task {
    /// Shows `what` on standard error, unless that is no terminal or the output is JSON.
    pub fn begin(json: bool, what: &str, far: Far) -> Self {
        let shown = !json && std::io::stderr().is_terminal();
        let (to, from) = channel();
        let what = what.to_owned();
        let started = shown
            .then(|| thread::Builder::new().name("progress".into()).spawn(move || show(what, far, &from)));
        // If the thread cannot start, nothing is shown; the task still runs.
        Self { thread: started.and_then(Result::ok).map(|thread| (to, thread)) }
    }

    /// Changes the text.
    pub fn doing(&self, what: &str) {
        if let Some((to, _)) = &self.thread {
            let _ = to.send(what.to_owned());
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some((to, thread)) = self.thread.take() {
            drop(to);
            let _ = thread.join();
        }
    }
}

/// Shows the line until the sender of `from` is dropped.
fn show(mut what: String, mut far: Far, from: &Receiver<String>) {
    let since = Instant::now();
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    let mut pause = SHOWN_AFTER;
    loop {
        match from.recv_timeout(pause) {
            Ok(next) => what = next,
            Err(RecvTimeoutError::Disconnected) => return bar.finish_and_clear(),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let elapsed = since.elapsed();
        pause = SHOWN_AFTER.saturating_sub(elapsed).max(REDRAWN_EVERY);
        if elapsed >= SHOWN_AFTER {
            draw(&bar, &what, elapsed, far(elapsed));
        }
    }
}

fn draw(bar: &ProgressBar, what: &str, elapsed: Duration, far: Option<(u64, u64)>) {
    if bar.is_hidden() {
        bar.set_draw_target(ProgressDrawTarget::stderr());
    }
    let template = if far.is_some() { "[{bar:24}] {wide_msg}" } else { "{spinner} {wide_msg}" };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> ").tick_chars("|/-\\ "));
    }
    if let Some((done, whole)) = far {
        bar.set_length(whole);
        bar.set_position(done.min(whole));
    }
    bar.set_message(line(what, elapsed, far));
    bar.tick();
}

/// The text, the time so far, and the time left at the rate so far.
fn line(what: &str, elapsed: Duration, far: Option<(u64, u64)>) -> String {
    let so_far = format!("{}: {}", one_line(what), time(elapsed));
    let share = far.map_or(0.0, |(done, whole)| done as f64 / whole.max(1) as f64);
    if share < RATE_FROM {
        return so_far;
    }
    let left = elapsed.mul_f64((1.0 - share).max(0.0) / share);
    format!("{so_far}, about {} left", time(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn what_is_left_goes_by_the_rate_until_now() {
        assert_eq!(line("measuring", S(4), None), "measuring: 4 s");
        assert_eq!(line("measuring", S(4), Some((1, 1_000))), "measuring: 4 s");
        assert_eq!(line("measuring", S(10), Some((25, 100))), "measuring: 10 s, about 30 s left");
        assert_eq!(line("measuring", S(10), Some((100, 100))), "measuring: 10 s, about 0 s left");
        assert_eq!(line("measuring", S(10), Some((5, 0))), "measuring: 10 s, about 0 s left");
    }

    #[test]
    fn what_takes_longer_than_expected_is_not_said_to_be_done() {
        let mut far = expected(S(10));
        assert_eq!([S(5), S(10), S(60)].map(&mut far), [Some((5_000, 10_000)), None, None]);
        assert_eq!(expected(S(0))(S(1)), None);
    }

    #[test]
    fn a_counter_is_unknown_until_it_is_set() {
        let counter = Counter::default();
        let mut far = counter.far();
        assert_eq!(far(S(1)), None);
        counter.set(3, 8);
        assert_eq!(far(S(1)), Some((3, 8)));
    }

    #[test]
    fn where_nothing_is_shown_a_task_costs_no_thread() {
        let task = Task::begin(true, "measuring", unknown());
        task.doing("something else");
        assert!(task.thread.is_none());
    }
}

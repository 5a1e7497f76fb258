//! The progress of an experiment: a bar on a terminal, a line for each run in a log.

use std::cell::RefCell;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use eke_model::text::one_line;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shows the progress.
pub trait Progress {
    /// The number of runs in all; called again when it changes.
    fn planned(&self, runs: usize);
    /// A run begins: `eke, 2 of 3`.
    fn begins(&self, run: &str);
    /// What the run does now: `page 31 of document 2`.
    fn doing(&self, what: &str);
    /// The run has ended.
    fn done(&self);
    /// Prints a line that stays.
    fn print(&self, line: &str);
}

/// Shows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn planned(&self, _runs: usize) {}
    fn begins(&self, _run: &str) {}
    fn doing(&self, _what: &str) {}
    fn done(&self) {}
    fn print(&self, _line: &str) {}
}

/// The second line shows what the run does now.
const TEMPLATE: &str = "[{bar:24}] {pos} of {len} runs, {elapsed} so far{prefix}\n{wide_msg}";
const REDRAWN_EVERY: Duration = Duration::from_millis(500);

/// On standard error: redrawn if that is a terminal, otherwise a line when a run begins.
pub struct Shown {
    bar: Option<ProgressBar>,
    runs: RefCell<Runs>,
}

/// The runs so far, for the estimate of the time left.
#[derive(Debug, Default)]
struct Runs {
    planned: usize,
    finished: Vec<Duration>,
    current: Option<(String, Instant)>,
}

impl Shown {
    /// With a bar, unless standard error is no terminal or the output is JSON.
    pub fn on_terminal(json: bool) -> Self {
        let bar = (!json && std::io::stderr().is_terminal()).then(bar);
        Self { bar, runs: RefCell::default() }
    }

    /// Without a bar, beside a program that writes to the terminal itself.
    pub fn in_lines() -> Self {
        Self { bar: None, runs: RefCell::default() }
    }

    /// Removes the bar; also after Ctrl-C, so that the next line begins on a clean one.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn draw(&self, doing: &str) {
        let Some(bar) = &self.bar else { return };
        let runs = self.runs.borrow();
        bar.set_length(runs.planned as u64);
        bar.set_position(runs.finished.len() as u64);
        bar.set_prefix(
            runs.left(Instant::now()).map_or(String::new(), |l| format!(", about {} left", time(l))),
        );
        let run = runs.current.as_ref().map_or("", |(run, _)| run.as_str());
        let parts = [run, doing].into_iter().filter(|p| !p.is_empty());
        bar.set_message(one_line(&parts.collect::<Vec<_>>().join(": ")).into_owned());
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.end();
    }
}

impl Progress for Shown {
    fn planned(&self, runs: usize) {
        self.runs.borrow_mut().planned = runs;
        self.draw("");
    }

    fn begins(&self, run: &str) {
        let now = Instant::now();
        self.runs.borrow_mut().begin(Some(run), now);
        self.draw("");
        if self.bar.is_none() {
            crate::warn!("{}", self.runs.borrow().line(run, now));
        }
    }

    fn doing(&self, what: &str) {
        self.draw(what);
    }

    fn done(&self) {
        self.runs.borrow_mut().begin(None, Instant::now());
        self.draw("");
    }

    fn print(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| crate::warn!("{line}")),
            None => crate::warn!("{line}"),
        }
    }
}

impl Runs {
    /// Ends the current run and begins the next one, if any.
    fn begin(&mut self, next: Option<&str>, now: Instant) {
        let over = self.current.take().map(|(_, since)| now.saturating_duration_since(since));
        self.finished.extend(over);
        self.current = next.map(|run| (run.to_owned(), now));
    }

    /// The log line for a run that begins.
    fn line(&self, run: &str, now: Instant) -> String {
        let left = self.left(now).map_or(String::new(), |left| format!(", about {} left", time(left)));
        format!("Run {} of {}: {run}{left}.", self.finished.len() + 1, self.planned)
    }

    /// The time left, by the median of the finished runs; `None` before the first ends.
    fn left(&self, now: Instant) -> Option<Duration> {
        let mut sorted = self.finished.clone();
        sorted.sort();
        let median = *sorted.get(sorted.len() / 2)?;
        let running = self.current.as_ref().map(|(_, since)| now.saturating_duration_since(*since));
        let rest = self.planned.saturating_sub(self.finished.len() + usize::from(running.is_some()));
        let rest = median * u32::try_from(rest).unwrap_or(u32::MAX);
        Some(rest + running.map_or(Duration::ZERO, |r| median.saturating_sub(r)))
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.enable_steady_tick(REDRAWN_EVERY);
    bar
}

/// A duration in whole seconds, minutes or hours.
pub fn time(left: Duration) -> String {
    match left.as_secs() {
        s if s < 90 => format!("{s} s"),
        s if s < 5400 => format!("{} min", (s + 30) / 60),
        s => format!("{:.1} h", s as f64 / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_goes_by_the_runs_until_now() {
        let start = Instant::now();
        let at = |s: u64| start + Duration::from_secs(s);
        let mut runs = Runs { planned: 10, ..Runs::default() };
        runs.begin(Some("none"), at(0));
        assert_eq!(runs.left(at(0)), None);
        [10, 20, 30].into_iter().for_each(|s| runs.begin(Some("bfq"), at(s)));
        assert_eq!(runs.line("bfq", at(30)), "Run 4 of 10: bfq, about 70 s left.");
    }

    #[test]
    fn the_time_left_is_the_median_of_finished_runs() {
        let start = Instant::now();
        let at = |s: u64| start + Duration::from_secs(s);
        let mut runs = Runs { planned: 5, ..Runs::default() };
        runs.begin(Some("none, 1 of 1"), at(0));
        assert_eq!(runs.left(at(5)), None);
        // 10, 30 and 12 seconds
        runs.begin(Some("eke, 1 of 2"), at(10));
        runs.begin(Some("eke, 2 of 2"), at(40));
        runs.begin(Some("a peer"), at(52));
        assert_eq!(runs.left(at(55)), Some(Duration::from_secs(12 + 9)));
        assert_eq!(runs.line("a peer", at(55)), "Run 4 of 5: a peer, about 21 s left.");
        runs.begin(None, at(100));
        assert_eq!(runs.finished.len(), 4);
        assert_eq!([30, 1800, 9000].map(|s| time(Duration::from_secs(s))), ["30 s", "30 min", "2.5 h"]);
    }
}

//! The loop: ask, wait for an event, draw.

use std::io;

use ratatui::Terminal;
use ratatui::backend::Backend;

use crate::draw::draw;
use crate::view::{Key, View};
use eke_present::refresh::Refresh;

/// An event.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A key was pressed.
    Key(Key),
    /// The terminal has another size.
    Resized,
    /// The answer to [`Outside::ask`]; an error if nothing could be read.
    Refresh(Box<Result<Refresh, String>>),
    /// A signal: end.
    Stop,
}

/// Everything outside: the machine, the keys, the signals, the time.
pub trait Outside {
    /// Requests a refresh, which comes later as an event: a silent agent delays no key.
    fn ask(&mut self);
    /// Waits for the next event; `None` if there is none within `at_most_ms`.
    fn next(&mut self, at_most_ms: u64) -> Option<Event>;
    /// A monotonic clock.
    fn now_ms(&self) -> u64;
}

/// When the next refresh is due, and whether one is requested.
#[derive(Debug)]
struct Pace {
    due_ms: u64,
    asked: bool,
}

/// The wait while paused, when nothing is due.
const LONG_MS: u64 = 60_000;
/// The interval at which the age of a late answer is redrawn.
const AGE_MS: u64 = 1_000;

/// Shows `view` on `terminal` and keeps it up to date until the user or a signal ends it.
///
/// # Errors
/// The terminal cannot be written to.
pub fn run<B: Backend>(
    terminal: &mut Terminal<B>,
    outside: &mut impl Outside,
    view: &mut View,
) -> io::Result<()> {
    let mut pace = Pace { due_ms: outside.now_ms(), asked: false };
    terminal.draw(|frame| draw(frame, view))?;
    loop {
        pace.ask_if_due(outside, view);
        let wait_ms = pace.wait_ms(outside.now_ms(), view);
        let event = outside.next(wait_ms);
        if event.is_none() && !pace.asked {
            continue;
        }
        view.now_ms = outside.now_ms();
        if event.is_some_and(|event| !handle(event, &mut pace, outside, view)) {
            return Ok(());
        }
        terminal.draw(|frame| draw(frame, view))?;
    }
}

/// Handles an event; false if it ends the program.
fn handle(event: Event, pace: &mut Pace, outside: &impl Outside, view: &mut View) -> bool {
    match event {
        Event::Stop => return false,
        Event::Key(key) => return !view.press(key),
        Event::Resized => {}
        Event::Refresh(refresh) => {
            pace.asked = false;
            view.refresh(*refresh, outside.now_ms());
        }
    }
    true
}

impl Pace {
    /// Requests a refresh if it is due and none is pending: a slow line or a busy agent gets fewer.
    fn ask_if_due(&mut self, outside: &mut impl Outside, view: &View) {
        let now_ms = outside.now_ms();
        if !self.asked && !view.paused && now_ms >= self.due_ms {
            outside.ask();
            self.asked = true;
            self.due_ms = now_ms + view.every_ms;
        }
    }

    fn wait_ms(&self, now_ms: u64, view: &View) -> u64 {
        match (self.asked, view.paused) {
            (true, _) => AGE_MS,
            (false, true) => LONG_MS,
            (false, false) => self.due_ms.saturating_sub(now_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use ratatui::backend::TestBackend;

    use super::*;
    use crate::view::Means;

    /// Answers each request 1 ms later, and plays events at their times.
    #[derive(Default)]
    struct Script {
        now_ms: u64,
        asked: Vec<u64>,
        answers: bool,
        pending: bool,
        events: VecDeque<(u64, Event)>,
    }

    impl Outside for Script {
        fn ask(&mut self) {
            self.asked.push(self.now_ms);
            self.pending = self.answers;
        }

        fn next(&mut self, at_most_ms: u64) -> Option<Event> {
            if std::mem::take(&mut self.pending) {
                self.now_ms += 1;
                return Some(Event::Refresh(Box::new(Ok(Refresh::default()))));
            }
            let at = self.events.front().map_or(u64::MAX, |(at, _)| *at);
            if at <= self.now_ms + at_most_ms {
                self.now_ms = at;
                return self.events.pop_front().map(|(_, event)| event);
            }
            self.now_ms += at_most_ms;
            None
        }

        fn now_ms(&self) -> u64 {
            self.now_ms
        }
    }

    fn play(answers: bool, events: &[(u64, Event)]) -> (Script, View) {
        let mut outside = Script { answers, events: events.iter().cloned().collect(), ..Script::default() };
        let mut view = View::new(Means { colours: false, ascii: false }, 1_000);
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        run(&mut terminal, &mut outside, &mut view).unwrap();
        (outside, view)
    }

    #[test]
    fn it_asks_at_its_interval_until_it_is_stopped() {
        let (outside, view) = play(true, &[(3_500, Event::Stop)]);
        assert_eq!(outside.asked, [0, 1_000, 2_000, 3_000]);
        assert_eq!(view.history.len(), 4);
    }

    #[test]
    fn a_silent_agent_is_asked_once_and_keeps_no_key_waiting() {
        let (outside, _) = play(
            false,
            &[(200, Event::Key(Key::Help)), (5_000, Event::Key(Key::Help)), (5_100, Event::Key(Key::Quit))],
        );
        assert_eq!((outside.asked, outside.now_ms), (vec![0], 5_100));
    }

    #[test]
    fn nothing_is_asked_while_it_pauses() {
        let pause = Event::Key(Key::Pause);
        let (outside, _) = play(true, &[(500, pause.clone()), (9_500, pause), (10_600, Event::Stop)]);
        assert_eq!(outside.asked, [0, 9_500, 10_500]);
    }
}

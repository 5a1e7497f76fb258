//! All that is drawn: folded from looks, keys and the time.

use eke_model::snapshot::Event;

use crate::history::{History, Point};
use eke_present::refresh::Refresh;
use eke_present::words::time;

/// A key that means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// q, Escape, Ctrl-C.
    Quit,
    /// p, Space.
    Pause,
    /// ?, h.
    Help,
    /// One older decision.
    Down,
    /// One newer decision.
    Up,
    /// Ten older ones.
    PageDown,
    /// Ten newer ones.
    PageUp,
    /// The newest.
    Home,
    /// The oldest.
    End,
}

/// How it is with the agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Agent {
    /// Nobody was asked yet.
    #[default]
    Unasked,
    /// It answers.
    Answers,
    /// None has run since this began: the figures are one's own.
    None,
    /// There was one; the figures are one's own since then.
    Gone {
        /// Milliseconds of the caller's clock.
        since_ms: u64,
    },
    /// It is there but does not answer; the figures are old.
    Silent {
        /// What was tried and what came of it.
        why: String,
    },
}

/// What a terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Means {
    /// Colours; else bold and words alone.
    pub colours: bool,
    /// No more than ASCII.
    pub ascii: bool,
}

/// The screen's contents.
#[derive(Debug, Clone)]
pub struct View {
    /// The last look; `None` before the first.
    pub look: Option<Refresh>,
    /// Those before.
    pub history: History,
    /// How it is with the agent.
    pub agent: Agent,
    /// What the agent did and noticed, newest first; the last ones that it said if it is gone.
    pub decisions: Vec<Event>,
    /// The first of them that is shown.
    pub scrolled: usize,
    /// Nothing is asked while this is set.
    pub paused: bool,
    /// The help lies over everything.
    pub help: bool,
    /// Between two refreshes.
    pub every_ms: u64,
    /// When this is, by the caller's clock.
    pub now_ms: u64,
    /// When the last look came.
    pub looked_ms: u64,
    /// What the terminal can show.
    pub means: Means,
}

/// How many decisions a page is.
const PAGE: usize = 10;
/// An agent answers within milliseconds, or is recompressing for a moment.
const LATE_MS: u64 = 2_000;

impl View {
    /// Before the first look.
    pub fn new(means: Means, every_ms: u64) -> Self {
        Self {
            look: None,
            history: History::default(),
            agent: Agent::Unasked,
            decisions: Vec::new(),
            scrolled: 0,
            paused: false,
            help: false,
            every_ms,
            now_ms: 0,
            looked_ms: 0,
            means,
        }
    }

    /// What a refresh brought; an error: the agent is there but does not answer.
    pub fn seen(&mut self, look: Result<Refresh, String>, now_ms: u64) {
        self.now_ms = now_ms;
        match look {
            Ok(look) => self.fold(look, now_ms),
            Err(why) => self.agent = Agent::Silent { why },
        }
    }

    fn fold(&mut self, look: Refresh, now_ms: u64) {
        let answers = look.snapshot.agent.is_some();
        self.agent = match (&self.agent, answers) {
            (_, true) => Agent::Answers,
            (Agent::Gone { since_ms }, false) => Agent::Gone { since_ms: *since_ms },
            (Agent::Answers | Agent::Silent { .. }, false) => Agent::Gone { since_ms: now_ms },
            (Agent::Unasked | Agent::None, false) => Agent::None,
        };
        if answers {
            self.decisions = look.snapshot.events.iter().rev().cloned().collect();
            self.scrolled = self.scrolled.min(self.last_decision());
        }
        self.looked_ms = now_ms;
        self.history.push(Point::new(&look, self.look.as_ref()));
        self.look = Some(look);
    }

    /// Does what a key means; `true`: it is the end.
    pub fn press(&mut self, key: Key) -> bool {
        let last = self.last_decision();
        match key {
            Key::Quit if self.help => self.help = false,
            Key::Quit => return true,
            Key::Pause => self.paused = !self.paused,
            Key::Help => self.help = !self.help,
            Key::Down => self.scrolled = (self.scrolled + 1).min(last),
            Key::Up => self.scrolled = self.scrolled.saturating_sub(1),
            Key::PageDown => self.scrolled = (self.scrolled + PAGE).min(last),
            Key::PageUp => self.scrolled = self.scrolled.saturating_sub(PAGE),
            Key::Home => self.scrolled = 0,
            Key::End => self.scrolled = last,
        }
        false
    }

    fn last_decision(&self) -> usize {
        self.decisions.len().saturating_sub(1)
    }

    /// What is wrong with the agent, as a sentence; `None`: nothing.
    pub fn trouble(&self) -> Option<String> {
        let for_ = |since_ms: u64| time(self.now_ms.saturating_sub(since_ms) / 1_000);
        match &self.agent {
            Agent::Unasked | Agent::Answers if self.is_late() => {
                Some(format!("no answer for {}, old figures", for_(self.looked_ms)))
            }
            Agent::Unasked | Agent::Answers => None,
            Agent::None => Some("no agent runs; read from the machine itself".into()),
            Agent::Gone { since_ms } => {
                Some(format!("agent gone for {}; reading the machine until it is back", for_(*since_ms)))
            }
            Agent::Silent { why } => {
                Some(format!("agent silent for {}, old figures: {why}", for_(self.looked_ms)))
            }
        }
    }

    /// An answer should have been here by now.
    fn is_late(&self) -> bool {
        !self.paused && self.now_ms.saturating_sub(self.looked_ms) > self.every_ms + LATE_MS
    }
}

#[cfg(test)]
mod tests {
    use eke_model::snapshot::{AgentState, Snapshot};

    use super::*;

    fn look(agent: bool, events: usize) -> Refresh {
        let event = |n| Event { unix_s: n as u64, text: format!("event {n}") };
        let snapshot = Snapshot {
            agent: agent.then(AgentState::default),
            events: (0..events).map(event).collect(),
            ..Snapshot::default()
        };
        Refresh { snapshot, ..Refresh::default() }
    }

    fn view() -> View {
        View::new(Means { colours: false, ascii: false }, 1_000)
    }

    #[test]
    fn an_agent_that_goes_is_missed_and_welcomed_again() {
        let mut v = view();
        v.seen(Ok(look(true, 3)), 1_000);
        assert_eq!((v.trouble(), v.decisions[0].unix_s), (None, 2));
        v.seen(Ok(look(false, 0)), 2_000);
        v.seen(Ok(look(false, 0)), 9_000);
        assert!(v.trouble().unwrap().contains("gone for 7 s"), "{:?}", v.trouble());
        assert_eq!(v.decisions.len(), 3, "the last ones that it said stay");
        v.seen(Ok(look(true, 1)), 10_000);
        assert_eq!((v.trouble(), v.decisions.len()), (None, 1));
    }

    #[test]
    fn without_an_agent_from_the_beginning_nobody_is_gone() {
        let mut v = view();
        v.seen(Ok(look(false, 0)), 1_000);
        v.seen(Ok(look(false, 0)), 2_000);
        assert_eq!(v.agent, Agent::None);
    }

    #[test]
    fn a_silent_agent_leaves_the_old_figures_with_their_age() {
        let mut v = view();
        v.seen(Ok(look(true, 1)), 1_000);
        v.seen(Err("timed out".into()), 2_000);
        v.seen(Err("timed out".into()), 5_000);
        assert!(v.look.is_some());
        assert!(v.trouble().unwrap().contains("silent for 4 s, old figures: timed out"));
        assert_eq!(v.history.len(), 1);
    }

    #[test]
    fn an_answer_that_does_not_come_is_said_before_the_agent_is_given_up() {
        let mut v = view();
        v.seen(Ok(look(true, 1)), 1_000);
        v.now_ms = 4_000;
        assert_eq!(v.trouble(), None);
        v.now_ms = 4_500;
        assert_eq!(v.trouble().as_deref(), Some("no answer for 3 s, old figures"));
        v.press(Key::Pause);
        assert_eq!(v.trouble(), None);
    }

    #[test]
    fn scrolling_stays_within_what_there_is() {
        let mut v = view();
        v.seen(Ok(look(true, 5)), 0);
        for (key, at) in [(Key::Up, 0), (Key::Down, 1), (Key::PageDown, 4), (Key::Home, 0), (Key::End, 4)] {
            assert!(!v.press(key));
            assert_eq!(v.scrolled, at, "{key:?}");
        }
        v.seen(Ok(look(true, 2)), 1);
        assert_eq!(v.scrolled, 1);
    }

    #[test]
    fn leaving_the_help_is_not_leaving() {
        let mut v = view();
        assert!(!v.press(Key::Help) && v.help);
        assert!(!v.press(Key::Quit) && !v.help);
        assert!(v.press(Key::Quit));
        assert!(!v.press(Key::Pause) && v.paused);
    }
}

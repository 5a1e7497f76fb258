//! The state that is drawn, folded from refreshes, keys and the time.

use eke_model::snapshot::Event;

use crate::history::{History, Point};
use eke_present::refresh::Refresh;
use eke_present::words::time;

/// A key with a meaning.
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

/// The state of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Agent {
    /// Not asked yet.
    #[default]
    Unasked,
    /// It answers.
    Answers,
    /// None has run since the start: the numbers are of this process's own samples.
    None,
    /// It is gone; since then the numbers are of this process's own samples.
    Gone {
        /// Milliseconds of the caller's clock.
        since_ms: u64,
    },
    /// It runs but does not answer; since then the numbers are of this process's own samples.
    Silent {
        /// Milliseconds of the caller's clock.
        since_ms: u64,
    },
    /// Neither the agent nor the machine can be read; the numbers are old.
    Unread {
        /// The error.
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
    /// The last refresh; `None` before the first.
    pub latest: Option<Refresh>,
    /// The refreshes so far.
    pub history: History,
    /// The state of the agent.
    pub agent: Agent,
    /// The agent's decisions, newest first; if it is gone, its last ones.
    pub decisions: Vec<Event>,
    /// The first of them that is shown.
    pub scrolled: usize,
    /// While set, no refresh is requested.
    pub paused: bool,
    /// The help lies over everything.
    pub help: bool,
    /// The time between two refreshes.
    pub every_ms: u64,
    /// Now, by the caller's clock.
    pub now_ms: u64,
    /// When the last refresh came.
    pub refreshed_ms: u64,
    /// What the terminal can show.
    pub means: Means,
}

/// How many decisions a page is.
const PAGE: usize = 10;
/// An agent answers within milliseconds, or is recompressing for a moment.
const LATE_MS: u64 = 2_000;

impl View {
    /// Before the first refresh.
    pub fn new(means: Means, every_ms: u64) -> Self {
        Self {
            latest: None,
            history: History::default(),
            agent: Agent::Unasked,
            decisions: Vec::new(),
            scrolled: 0,
            paused: false,
            help: false,
            every_ms,
            now_ms: 0,
            refreshed_ms: 0,
            means,
        }
    }

    /// Takes a refresh; an error means that nothing could be read.
    pub fn refresh(&mut self, refresh: Result<Refresh, String>, now_ms: u64) {
        self.now_ms = now_ms;
        match refresh {
            Ok(refresh) => self.fold(refresh, now_ms),
            Err(why) => self.agent = Agent::Unread { why },
        }
    }

    fn fold(&mut self, refresh: Refresh, now_ms: u64) {
        let answers = refresh.snapshot.agent.is_some();
        let is_silent = refresh.snapshot.agent_silent.is_some();
        self.agent = match &self.agent {
            _ if answers => Agent::Answers,
            Agent::Silent { since_ms } if is_silent => Agent::Silent { since_ms: *since_ms },
            _ if is_silent => Agent::Silent { since_ms: now_ms },
            Agent::Gone { since_ms } => Agent::Gone { since_ms: *since_ms },
            Agent::Answers | Agent::Silent { .. } | Agent::Unread { .. } => Agent::Gone { since_ms: now_ms },
            Agent::Unasked | Agent::None => Agent::None,
        };
        if answers {
            self.decisions = refresh.snapshot.events.iter().rev().cloned().collect();
            self.scrolled = self.scrolled.min(self.last_decision());
        }
        self.refreshed_ms = now_ms;
        self.history.push(Point::new(&refresh, self.latest.as_ref()));
        self.latest = Some(refresh);
    }

    /// Handles a key; true if it ends the program.
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

    /// What is wrong with the agent, as a sentence; `None` if nothing is.
    pub fn trouble(&self) -> Option<String> {
        let for_ = |since_ms: u64| time(self.now_ms.saturating_sub(since_ms) / 1_000);
        match &self.agent {
            Agent::Unasked | Agent::Answers if self.is_late() => {
                Some(format!("no answer for {}, old numbers", for_(self.refreshed_ms)))
            }
            Agent::Unasked | Agent::Answers => None,
            Agent::None => Some("no agent runs; eke top samples the machine itself".into()),
            Agent::Gone { since_ms } => {
                Some(format!("agent gone for {}; reading the machine until it is back", for_(*since_ms)))
            }
            Agent::Silent { since_ms } => {
                Some(format!("agent silent for {}; reading the machine until it answers", for_(*since_ms)))
            }
            Agent::Unread { why } => {
                Some(format!("nothing read for {}, old numbers: {why}", for_(self.refreshed_ms)))
            }
        }
    }

    /// True if an answer is overdue.
    fn is_late(&self) -> bool {
        !self.paused && self.now_ms.saturating_sub(self.refreshed_ms) > self.every_ms + LATE_MS
    }
}

#[cfg(test)]
mod tests {
    use eke_model::snapshot::{AgentState, Snapshot};

    use super::*;

    fn refresh(agent: bool, events: usize) -> Refresh {
        let event = |n| Event { unix_s: n as u64, text: format!("event {n}"), ..Event::default() };
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
    fn an_agent_that_goes_is_reported_gone_until_it_is_back() {
        let mut v = view();
        v.refresh(Ok(refresh(true, 3)), 1_000);
        assert_eq!((v.trouble(), v.decisions[0].unix_s), (None, 2));
        v.refresh(Ok(refresh(false, 0)), 2_000);
        v.refresh(Ok(refresh(false, 0)), 9_000);
        assert!(v.trouble().unwrap().contains("gone for 7 s"), "{:?}", v.trouble());
        assert_eq!(v.decisions.len(), 3, "its last ones stay");
        v.refresh(Ok(refresh(true, 1)), 10_000);
        assert_eq!((v.trouble(), v.decisions.len()), (None, 1));
    }

    #[test]
    fn without_an_agent_from_the_beginning_nobody_is_gone() {
        let mut v = view();
        v.refresh(Ok(refresh(false, 0)), 1_000);
        v.refresh(Ok(refresh(false, 0)), 2_000);
        assert_eq!(v.agent, Agent::None);
    }

    #[test]
    fn a_machine_that_cannot_be_read_leaves_the_old_numbers_with_their_age() {
        let mut v = view();
        v.refresh(Ok(refresh(true, 1)), 1_000);
        v.refresh(Err("no /proc".into()), 2_000);
        v.refresh(Err("no /proc".into()), 5_000);
        assert!(v.latest.is_some());
        assert!(v.trouble().unwrap().contains("nothing read for 4 s, old numbers: no /proc"));
        assert_eq!(v.history.len(), 1);
    }

    #[test]
    fn a_silent_agent_is_reported_beside_new_numbers() {
        let silent = || {
            let mut of = refresh(false, 0);
            of.snapshot.agent_silent = Some("no answer within 5 s".into());
            of
        };
        let mut v = view();
        v.refresh(Ok(refresh(true, 3)), 1_000);
        v.refresh(Ok(silent()), 6_000);
        v.refresh(Ok(silent()), 10_000);
        assert!(
            v.trouble().unwrap().starts_with("agent silent for 4 s; reading the machine"),
            "{:?}",
            v.trouble()
        );
        assert_eq!((v.decisions.len(), v.history.len()), (3, 3), "its last decisions stay");
        v.refresh(Ok(refresh(false, 0)), 11_000);
        assert!(v.trouble().unwrap().contains("gone for 0 s"), "{:?}", v.trouble());
        v.refresh(Ok(refresh(true, 1)), 12_000);
        assert_eq!(v.trouble(), None);
    }

    #[test]
    fn a_late_answer_is_reported_before_the_agent_counts_as_silent() {
        let mut v = view();
        v.refresh(Ok(refresh(true, 1)), 1_000);
        v.now_ms = 4_000;
        assert_eq!(v.trouble(), None);
        v.now_ms = 4_500;
        assert_eq!(v.trouble().as_deref(), Some("no answer for 3 s, old numbers"));
        v.press(Key::Pause);
        assert_eq!(v.trouble(), None);
    }

    #[test]
    fn scrolling_stays_within_what_there_is() {
        let mut v = view();
        v.refresh(Ok(refresh(true, 5)), 0);
        for (key, at) in [(Key::Up, 0), (Key::Down, 1), (Key::PageDown, 4), (Key::Home, 0), (Key::End, 4)] {
            assert!(!v.press(key));
            assert_eq!(v.scrolled, at, "{key:?}");
        }
        v.refresh(Ok(refresh(true, 2)), 1);
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

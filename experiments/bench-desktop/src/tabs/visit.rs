//! The experiment: tabs are opened and used, one more each time, until one cannot be.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use eke_linux::Root;

use super::browser::{Broken, Browser, Tab};
use super::place::Place;
use super::{Spec, launch, memory};
use crate::session::{End, Event};

/// How long a browser may take to start, even from a slow disk: not what is measured.
const START: Duration = Duration::from_secs(120);

/// Holds the experiment and tells each event as it happens, but for the last ([`Event::Ended`]), which is given back. The
/// browser keeps its files in a directory below `above`, which is gone afterwards, as are all its processes. To be called
/// from the main thread of a process of its own: all processes below it are ended.
pub fn run(root: &Root, spec: &Spec, above: &Path, stop: &AtomicBool, tell: &mut dyn FnMut(Event)) -> End {
    let begun = Instant::now();
    let place = match launch::adopt()
        .map_err(|e| e.to_string())
        .and_then(|()| Place::make(root, above).map_err(|e| e.to_string()))
    {
        Ok(place) => place,
        Err(why) => return End::Failed { why },
    };
    let launched = match launch::start(spec, place.path()) {
        Ok(launched) => launched,
        Err(e) => return failed(format!("cannot start {}: {e}; is it installed?", spec.program.display())),
    };
    let browser = Browser::new(launched, stop);
    let ooms = memory::oom_kills(root);
    let mut round = Round { root, spec, browser, tabs: Vec::new(), ooms, doing: "start".into(), tell };
    let end = match round.hold(begun) {
        Ok(end) => end,
        Err(broken) => round.end(broken),
    };
    launch::end_all(root, &mut round.browser.child);
    end
}

fn failed(why: String) -> End {
    End::Failed { why }
}

/// Which of the tabs before `tab` are visited: all, or the next `most` in turn, where `visited` counts all visits so far.
fn to_visit(tab: usize, most: Option<usize>, visited: &mut usize) -> Vec<usize> {
    let count = most.map_or(tab, |most| most.min(tab));
    let begin = if count == tab { 0 } else { *visited };
    *visited += count;
    (0..count).map(|n| (begin + n) % tab.max(1)).collect()
}

struct Round<'a> {
    root: &'a Root,
    spec: &'a Spec,
    browser: Browser<'a>,
    tabs: Vec<Tab>,
    /// OOM kills before it began.
    ooms: u64,
    /// For people: what is waited for.
    doing: String,
    tell: &'a mut dyn FnMut(Event),
}

impl Round<'_> {
    fn hold(&mut self, begun: Instant) -> Result<End, Broken> {
        self.browser.ready(begun + START)?;
        (self.tell)(Event::Ready { seconds: begun.elapsed().as_secs_f64() });
        let mut visited = 0;
        for tab in 0..self.spec.tabs {
            self.open(tab)?;
            self.scroll(tab)?;
            for earlier in to_visit(tab, self.spec.visits, &mut visited) {
                self.visit(earlier)?;
            }
            if let Some(end) = self.killed() {
                return Ok(end);
            }
            let pids = memory::below(self.root, std::process::id());
            (self.tell)(Event::Held(memory::held(self.root, &pids, tab + 1)));
        }
        Ok(End::Finished)
    }

    fn open(&mut self, number: usize) -> Result<(), Broken> {
        let (begun, until) = self.begin(format!("tab {number} to open"));
        let tab = self.browser.new_tab(until)?;
        self.tabs.push(tab.clone());
        self.doing = format!("the page of tab {number}");
        self.browser.go_to(&tab, &self.spec.address(number), until)?;
        self.doing = format!("the script of tab {number}");
        self.browser.value(&tab, &format!("eke.open('state of tab {number}')"), until)?;
        self.doing = format!("the picture of tab {number}");
        let content = self.browser.picture(&tab, until)?;
        (self.tell)(Event::Opened { document: number, seconds: begun.elapsed().as_secs_f64(), content });
        self.in_time(until)
    }

    /// Screens of the document from its beginning to its end, each seen to differ from the one before.
    fn scroll(&mut self, number: usize) -> Result<(), Broken> {
        let mut shown = 0;
        let tab = self.tabs[number].clone();
        for page in 0..self.spec.screens {
            let (begun, until) = self.begin(format!("screen {page} of tab {number}"));
            let scroll = format!("eke.scroll({}, {}), eke.drawn()", page + 1, self.spec.screens);
            self.browser.value(&tab, &scroll, until)?;
            let content = self.browser.picture(&tab, until)?;
            (self.tell)(Event::Page {
                document: number,
                page,
                back: false,
                seconds: begun.elapsed().as_secs_f64(),
                content,
                as_expected: Some(content != shown),
            });
            shown = content;
            self.in_time(until)?;
        }
        Ok(())
    }

    /// A tab to the front, a word looked up in it, and drawn. The state of its page must be there still.
    fn visit(&mut self, number: usize) -> Result<(), Broken> {
        let (begun, until) = self.begin(format!("tab {number} to be shown again"));
        let tab = self.tabs[number].clone();
        self.browser.activate(&tab, until)?;
        let word = 50 + self.tabs.len();
        let look_up = format!("window.eke ? eke.drawn().then(() => eke.find({word})) : null");
        let state = self.browser.value(&tab, &look_up, until)?;
        if state.as_str() != Some(&format!("state of tab {number}")) {
            return Err(Broken::Crashed { target: tab.target, signal: None });
        }
        self.browser.picture(&tab, until)?;
        (self.tell)(Event::Switched { document: number, seconds: begun.elapsed().as_secs_f64() });
        self.in_time(until)
    }

    fn begin(&mut self, doing: String) -> (Instant, Instant) {
        self.doing = doing;
        let now = Instant::now();
        (now, now + Duration::from_secs_f64(self.spec.patience_s.clamp(0.0, 3600.0)))
    }

    fn in_time(&self, until: Instant) -> Result<(), Broken> {
        if Instant::now() > until { Err(Broken::TooSlow) } else { Ok(()) }
    }

    /// A process that the OOM killer took and that nobody missed, such as one that Chromium keeps ready.
    fn killed(&self) -> Option<End> {
        let what = format!("a process of the browser, with {} tabs", self.tabs.len());
        (memory::oom_kills(self.root) > self.ooms).then_some(End::Killed { what, signal: Some(9) })
    }

    fn end(&self, broken: Broken) -> End {
        match broken {
            Broken::Gone(signal) => End::Killed { what: format!("browser, {}", self.doing), signal },
            Broken::Crashed { target, signal } => End::Killed { what: self.name(&target), signal },
            Broken::TooSlow => self.killed().unwrap_or_else(|| End::TooSlow { what: self.doing.clone() }),
            refused @ Broken::Refused { .. } => {
                self.killed().unwrap_or_else(|| failed(format!("{}: {refused}", self.doing)))
            }
            Broken::Stopped => failed("interrupted".to_owned()),
        }
    }

    fn name(&self, target: &str) -> String {
        let number = self.tabs.iter().position(|tab| tab.target == target || tab.session == target);
        let tab = number.map_or_else(|| "a page of the browser".to_owned(), |n| format!("tab {n}"));
        format!("{tab}, with {} tabs", self.tabs.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_visited_or_some_in_turn() {
        let mut visited = 0;
        let all: Vec<_> = (0..4).map(|tab| to_visit(tab, None, &mut visited)).collect();
        assert_eq!(all, [vec![], vec![0], vec![0, 1], vec![0, 1, 2]]);
        let mut visited = 0;
        let some: Vec<_> = (0..5).map(|tab| to_visit(tab, Some(2), &mut visited)).collect();
        assert_eq!(some, [vec![], vec![0], vec![0, 1], vec![0, 1], vec![1, 2]]);
    }
}

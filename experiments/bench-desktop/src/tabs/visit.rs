//! The run: opens and uses tabs, one more each time, until one fails.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use eke_linux::Root;

use super::browser::{Browser, BrowserError, Tab};
use super::profile::Profile;
use super::{Spec, launch, memory};
use crate::session::{End, Event};

/// How long a browser may take to start, even from a slow disk. The start is not measured.
const START: Duration = Duration::from_secs(120);

/// Runs the tabs and passes each event to `report`, except the last ([`Event::Ended`]), which it returns. The browser's profile
/// directory in `parent` is removed at the end. Call it from the main thread of a separate process: it ends all descendants of
/// the process.
pub fn run(root: &Root, spec: &Spec, parent: &Path, stop: &AtomicBool, report: &mut dyn FnMut(Event)) -> End {
    let begun = Instant::now();
    let profile = match launch::adopt_orphans()
        .map_err(|e| e.to_string())
        .and_then(|()| Profile::make(root, parent).map_err(|e| e.to_string()))
    {
        Ok(profile) => profile,
        Err(why) => return End::Failed { why },
    };
    let launched = match launch::start(spec, profile.path()) {
        Ok(launched) => launched,
        Err(e) => return failed(format!("cannot start {}: {e}; is it installed?", spec.program.display())),
    };
    let browser = Browser::new(launched, stop);
    let ooms = memory::oom_kills(root);
    let mut tabs = TabRun { root, spec, browser, tabs: Vec::new(), ooms, doing: "start".into(), report };
    let end = match tabs.run(begun) {
        Ok(end) => end,
        Err(error) => tabs.end(error),
    };
    launch::end_all(root, &mut tabs.browser.child);
    end
}

fn failed(why: String) -> End {
    End::Failed { why }
}

/// The tabs before `tab` to visit: all, or the next `most` in rotation. `visited` counts all visits so far.
fn to_visit(tab: usize, most: Option<usize>, visited: &mut usize) -> Vec<usize> {
    let count = most.map_or(tab, |most| most.min(tab));
    let begin = if count == tab { 0 } else { *visited };
    *visited += count;
    (0..count).map(|n| (begin + n) % tab.max(1)).collect()
}

struct TabRun<'a> {
    root: &'a Root,
    spec: &'a Spec,
    browser: Browser<'a>,
    tabs: Vec<Tab>,
    /// OOM kills before the run.
    ooms: u64,
    /// The current action, for messages.
    doing: String,
    report: &'a mut dyn FnMut(Event),
}

impl TabRun<'_> {
    fn run(&mut self, begun: Instant) -> Result<End, BrowserError> {
        self.browser.ready(begun + START)?;
        (self.report)(Event::Ready { seconds: begun.elapsed().as_secs_f64() });
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
            let pids = memory::descendants(self.root, std::process::id());
            (self.report)(Event::Memory(memory::memory_use(self.root, &pids, tab + 1)));
        }
        Ok(End::Finished)
    }

    fn open(&mut self, number: usize) -> Result<(), BrowserError> {
        let (begun, until) = self.begin(format!("tab {number} to open"));
        let tab = self.browser.new_tab(until)?;
        self.tabs.push(tab.clone());
        self.doing = format!("the page of tab {number}");
        self.browser.go_to(&tab, &self.spec.address(number), until)?;
        self.doing = format!("the script of tab {number}");
        self.browser.value(&tab, &format!("eke.open('state of tab {number}')"), until)?;
        self.doing = format!("the picture of tab {number}");
        let content = self.browser.screenshot(&tab, until)?;
        (self.report)(Event::Opened { document: number, seconds: begun.elapsed().as_secs_f64(), content });
        self.in_time(until)
    }

    /// Scrolls through the document from its beginning to its end. Each screen must differ from the one before.
    fn scroll(&mut self, number: usize) -> Result<(), BrowserError> {
        let mut shown = 0;
        let tab = self.tabs[number].clone();
        for page in 0..self.spec.screens {
            let (begun, until) = self.begin(format!("screen {page} of tab {number}"));
            let scroll = format!("eke.scroll({}, {}), eke.drawn()", page + 1, self.spec.screens);
            self.browser.value(&tab, &scroll, until)?;
            let content = self.browser.screenshot(&tab, until)?;
            (self.report)(Event::Page {
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

    /// Brings a tab to the front, searches a word in it, and draws it. The page must still have its state.
    fn visit(&mut self, number: usize) -> Result<(), BrowserError> {
        let (begun, until) = self.begin(format!("tab {number} to be shown again"));
        let tab = self.tabs[number].clone();
        self.browser.activate(&tab, until)?;
        let word = 50 + self.tabs.len();
        let search = format!("window.eke ? eke.drawn().then(() => eke.find({word})) : null");
        let state = self.browser.value(&tab, &search, until)?;
        if state.as_str() != Some(&format!("state of tab {number}")) {
            return Err(BrowserError::Crashed { target: tab.target, signal: None });
        }
        self.browser.screenshot(&tab, until)?;
        (self.report)(Event::Switched { document: number, seconds: begun.elapsed().as_secs_f64() });
        self.in_time(until)
    }

    fn begin(&mut self, doing: String) -> (Instant, Instant) {
        self.doing = doing;
        let now = Instant::now();
        (now, now + Duration::from_secs_f64(self.spec.patience_s.clamp(0.0, 3600.0)))
    }

    fn in_time(&self, until: Instant) -> Result<(), BrowserError> {
        if Instant::now() > until { Err(BrowserError::TooSlow) } else { Ok(()) }
    }

    /// An OOM kill that broke no tab, such as of a spare process of Chromium.
    fn killed(&self) -> Option<End> {
        let what = format!("a process of the browser, with {} tabs", self.tabs.len());
        (memory::oom_kills(self.root) > self.ooms).then_some(End::Killed { what, signal: Some(9) })
    }

    fn end(&self, error: BrowserError) -> End {
        match error {
            BrowserError::Gone(signal) => End::Killed { what: format!("browser, {}", self.doing), signal },
            BrowserError::Crashed { target, signal } => End::Killed { what: self.name(&target), signal },
            BrowserError::TooSlow => {
                self.killed().unwrap_or_else(|| End::TooSlow { what: self.doing.clone() })
            }
            refused @ BrowserError::Refused { .. } => {
                self.killed().unwrap_or_else(|| failed(format!("{}: {refused}", self.doing)))
            }
            BrowserError::Stopped => failed("interrupted".to_owned()),
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
    fn all_are_visited_or_some_in_rotation() {
        let mut visited = 0;
        let all: Vec<_> = (0..4).map(|tab| to_visit(tab, None, &mut visited)).collect();
        assert_eq!(all, [vec![], vec![0], vec![0, 1], vec![0, 1, 2]]);
        let mut visited = 0;
        let some: Vec<_> = (0..5).map(|tab| to_visit(tab, Some(2), &mut visited)).collect();
        assert_eq!(some, [vec![], vec![0], vec![0, 1], vec![0, 1], vec![1, 2]]);
    }
}

//! The acts of a session, one after the other.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::drawn::{Drawn, Next, Watch};
use super::memory::{self, Activity};
use super::room::{Room, Stop, failed};
use super::viewer::{Key, Viewer};
use super::windows::Windows;
use super::{display, needs, screen};
use crate::session::{Act, Event, Held, Spec};

/// A session whose screen is there.
pub(super) struct Desktop<'s, 'a> {
    spec: &'s Spec,
    viewer: &'static Viewer,
    room: &'s mut Room<'a>,
    windows: Windows,
    display: String,
    open: Vec<Option<Document>>,
}

/// An open document.
#[derive(Debug, Clone, Copy)]
struct Document {
    pid: u32,
    window: u32,
    page: u32,
    /// What its window showed last.
    content: u64,
}

/// What is waited for.
#[derive(Clone, Copy)]
struct Wanted<'w> {
    window: u32,
    pid: u32,
    asked: Instant,
    until: Instant,
    before: Option<u64>,
    expected: Option<u64>,
    may_stay: bool,
    what: &'w dyn Fn() -> String,
}

impl<'s, 'a> Desktop<'s, 'a> {
    /// Of a display that is ready.
    pub fn new(
        spec: &'s Spec,
        viewer: &'static Viewer,
        room: &'s mut Room<'a>,
        (windows, display): (Windows, String),
    ) -> Self {
        Self { spec, viewer, room, windows, display, open: vec![None; spec.documents.len()] }
    }

    /// Does one act.
    ///
    /// # Errors
    /// The session is over.
    pub fn act(&mut self, act: Act) -> Result<(), Stop> {
        match act {
            Act::Open { document } => {
                self.open(document)?;
                self.held()
            }
            Act::Browse { document, pages, back } => {
                self.browse(document, pages, back)?;
                self.held()
            }
            Act::Switch { document } => self.switch(document),
            Act::Rest { ms } => self.rest(Duration::from_millis(ms)),
        }
    }

    fn open(&mut self, document: usize) -> Result<(), Stop> {
        let file = self.spec.documents.get(document).ok_or_else(|| unknown(document))?;
        if self.open[document].is_some() {
            return Err(failed(format!("document {} is open already", document + 1)));
        }
        if !file.is_file() {
            return Err(failed(format!("there is no document {}", file.display())));
        }
        let what = || format!("the first page of document {}", document + 1);
        let known = self.windows.clients()?;
        let (asked, until) = (Instant::now(), self.until());
        let pid = self.start_viewer(document, file)?;
        let window = self.new_window(&known, until, &what)?;
        self.windows.watch(window)?;
        self.windows.maximise(window)?;
        self.wait_until(until, &what, |windows| windows.maximised(window))?;
        self.bring_to_front(window, until, &what)?;
        // What was drawn before the window was watched is damage too.
        let mut wanted =
            Wanted { window, pid, asked, until, before: None, expected: None, may_stay: false, what: &what };
        let since = asked.elapsed();
        let expected = self.expected(document, 0);
        let Drawn { at, content, .. } = match self.viewer.fit {
            None => self.drawn(&Wanted { expected, ..wanted }, Some(since))?,
            Some(key) => {
                let unfit = self.drawn(&wanted, Some(since))?;
                (wanted.before, wanted.expected) = (Some(unfit.content), expected);
                self.fit(key, &mut wanted, unfit.at)?
            }
        };
        self.open[document] = Some(Document { pid, window, page: 0, content });
        self.tell(&Event::Opened { document, seconds: at.as_secs_f64(), content })
    }

    /// A key that is pressed before the window has its size would fit the page to another one. The driver's own wait
    /// between the two drawings is not counted.
    fn fit(&mut self, key: Key, wanted: &mut Wanted<'_>, before: Duration) -> Result<Drawn, Stop> {
        self.windows.damage(wanted.window)?;
        (wanted.asked, wanted.may_stay) = (Instant::now(), true);
        self.windows.press(key)?;
        let drawn = self.drawn(wanted, None)?;
        Ok(Drawn { at: before + drawn.at, ..drawn })
    }

    fn start_viewer(&mut self, document: usize, file: &Path) -> Result<u32, Stop> {
        let Viewer { name, programs, package, arguments, .. } = self.viewer;
        let program = needs::find(programs).ok_or_else(|| display::missing(name, programs, package))?;
        let mut command = self.room.command(program);
        command.args(*arguments).arg(file).env("DISPLAY", &self.display);
        let what = format!("viewer of document {}", document + 1);
        Ok(self.room.children.start(&what, &mut command, Signal::KILL)?.id())
    }

    fn new_window(&mut self, known: &[u32], until: Instant, what: &dyn Fn() -> String) -> Result<u32, Stop> {
        let new = |windows: &Windows| {
            let clients = windows.clients()?;
            Ok::<_, Stop>(clients.into_iter().find(|window| !known.contains(window)))
        };
        let mut window = None;
        self.wait_until(until, what, |windows| {
            window = new(windows)?;
            Ok(window.is_some())
        })?;
        window.ok_or_else(|| failed("the viewer has no window"))
    }

    fn browse(&mut self, document: usize, pages: u32, back: bool) -> Result<(), Stop> {
        let window = self.document(document)?.window;
        let until = self.until();
        self.bring_to_front(window, until, &|| format!("the window of document {}", document + 1))?;
        self.settle(document)?;
        for _ in 0..pages {
            self.turn(document, back)?;
        }
        Ok(())
    }

    /// The window's content must be known before the first key, and be the document's own: a window that was just
    /// brought to the front is drawn anew. That is not timed, but has its end.
    fn settle(&mut self, document: usize) -> Result<(), Stop> {
        let Document { window, content, .. } = self.document(document)?;
        let asked = Instant::now();
        if self.look(window)? == content {
            return Ok(());
        }
        self.drawn_again(document, asked, Some(Duration::ZERO)).map(drop)
    }

    /// Waits for what a window showed before.
    fn drawn_again(
        &mut self,
        document: usize,
        asked: Instant,
        first_damage: Option<Duration>,
    ) -> Result<Drawn, Stop> {
        let Document { window, pid, content, .. } = self.document(document)?;
        let (until, what) = (self.until(), || format!("the window of document {}", document + 1));
        let wanted = Wanted {
            window,
            pid,
            asked,
            until,
            before: None,
            expected: Some(content),
            may_stay: false,
            what: &what,
        };
        let drawn = self.drawn(&wanted, first_damage)?;
        self.update(document, |d| d.content = drawn.content);
        Ok(drawn)
    }

    fn turn(&mut self, document: usize, back: bool) -> Result<(), Stop> {
        let Document { window, pid, page, content, .. } = self.document(document)?;
        let page = if back { page.checked_sub(1) } else { page.checked_add(1) };
        let page =
            page.ok_or_else(|| failed(format!("document {} has no page before its first", document + 1)))?;
        let what = || format!("page {page} of document {}", document + 1);
        // What was damaged by the page before is no news.
        self.windows.damage(window)?;
        let (asked, until) = (Instant::now(), self.until());
        self.windows.press(if back { self.viewer.back } else { self.viewer.next })?;
        let expected = self.expected(document, page);
        let wanted = Wanted {
            window,
            pid,
            asked,
            until,
            before: Some(content),
            expected,
            may_stay: false,
            what: &what,
        };
        let Drawn { at, content, as_expected } = self.drawn(&wanted, None)?;
        self.update(document, |d| (d.page, d.content) = (page, content));
        self.tell(&Event::Page { document, page, back, seconds: at.as_secs_f64(), content, as_expected })
    }

    fn switch(&mut self, document: usize) -> Result<(), Stop> {
        let window = self.document(document)?.window;
        self.windows.damage(window)?;
        let asked = Instant::now();
        self.windows.activate(window)?;
        let drawn = self.drawn_again(document, asked, None)?;
        self.tell(&Event::Switched { document, seconds: drawn.at.as_secs_f64() })
    }

    fn rest(&mut self, time: Duration) -> Result<(), Stop> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            // A rest is never too slow.
            self.room.wait(None, end + Duration::from_secs(3600), String::new)?;
        }
        Ok(())
    }

    /// Waits until a window is drawn; looks only while it is at the front, since elsewhere it shows others.
    fn drawn(&mut self, wanted: &Wanted<'_>, first_damage: Option<Duration>) -> Result<Drawn, Stop> {
        let watch = Watch::new(wanted.before, wanted.expected);
        let mut watch = if wanted.may_stay { watch.may_stay() } else { watch };
        first_damage.into_iter().for_each(|at| watch.damage(at));
        let pids = self.working(wanted.pid);
        let mut before = pids.map(activity);
        let mut height = self.document_height(wanted.window)?;
        loop {
            if self.damaged(wanted.window, height)? {
                watch.damage(wanted.asked.elapsed());
            }
            match watch.next(wanted.asked.elapsed()) {
                Next::Drawn(drawn) => return Ok(drawn),
                Next::Look if self.windows.at_the_front(wanted.window)? => {
                    height = self.document_height(wanted.window)?;
                    watch.see(self.look(wanted.window)?);
                }
                next => self.wait(wanted, next)?,
            }
            let now = pids.map(activity);
            if now.iter().zip(&before).any(|(now, before)| now.since(before)) {
                watch.work(wanted.asked.elapsed());
            }
            before = now;
        }
    }

    /// Until there is an event, or it is time; at most a tick.
    fn wait(&mut self, wanted: &Wanted<'_>, next: Next) -> Result<(), Stop> {
        let due = match next {
            Next::Wait(due) => wanted.asked + due,
            _ => Instant::now() + Duration::from_millis(5),
        };
        if Instant::now() >= wanted.until {
            return self.room.wait(None, wanted.until, wanted.what);
        }
        self.room.wait_briefly(&self.windows, due.min(wanted.until))
    }

    fn wait_until(
        &mut self,
        until: Instant,
        what: &dyn Fn() -> String,
        mut there: impl FnMut(&Windows) -> Result<bool, Stop>,
    ) -> Result<(), Stop> {
        while !there(&self.windows)? {
            self.room.wait(Some(&self.windows), until, what)?;
            // Root's properties change; the events themselves say nothing more.
            self.windows.damage(x11rb::NONE)?;
        }
        Ok(())
    }

    fn bring_to_front(&mut self, window: u32, until: Instant, what: &dyn Fn() -> String) -> Result<(), Stop> {
        self.windows.activate(window)?;
        self.wait_until(until, what, |windows| windows.at_the_front(window))
    }

    fn damaged(&self, window: u32, height: u16) -> Result<bool, Stop> {
        let damage = self.windows.damage(window)?;
        Ok(damage.iter().any(|area| i32::from(area.y) < i32::from(height)))
    }

    fn document_height(&self, window: u32) -> Result<u16, Stop> {
        Ok(screen::document_height(self.windows.size(window)?.1, self.viewer.below))
    }

    fn look(&self, window: u32) -> Result<u64, Stop> {
        screen::content(&self.windows, window, self.viewer.below)
    }

    fn held(&mut self) -> Result<(), Stop> {
        let mut held = Held { documents: self.open.iter().flatten().count(), ..Held::default() };
        for Document { pid, .. } in self.open.iter().flatten() {
            memory::add(&mut held, &proc(*pid, "status"));
        }
        self.tell(&Event::Held(held))
    }

    /// The programs that draw: the viewer and the X server.
    fn working(&self, viewer: u32) -> [u32; 2] {
        [viewer, self.room.children.first().unwrap_or(viewer)]
    }

    fn tell(&mut self, event: &Event) -> Result<(), Stop> {
        self.room.tell(event)
    }

    fn until(&self) -> Instant {
        Instant::now() + patience(self.spec)
    }

    fn expected(&self, document: usize, page: u32) -> Option<u64> {
        self.spec.expected.get(document)?.get(usize::try_from(page).ok()?).copied()
    }

    fn document(&self, document: usize) -> Result<Document, Stop> {
        self.open.get(document).copied().flatten().ok_or_else(|| unknown(document))
    }

    fn update(&mut self, document: usize, change: impl FnOnce(&mut Document)) {
        self.open.get_mut(document).and_then(Option::as_mut).map(change);
    }
}

/// The longest wait for a window.
pub(super) fn patience(spec: &Spec) -> Duration {
    Duration::try_from_secs_f64(spec.patience_s).unwrap_or(Duration::from_secs(3600 * 24))
}

fn unknown(document: usize) -> Stop {
    failed(format!("document {} is not open, or not in the session's list", document + 1))
}

fn activity(pid: u32) -> Activity {
    Activity::of(&proc(pid, "stat"))
}

fn proc(pid: u32, file: &str) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default()
}

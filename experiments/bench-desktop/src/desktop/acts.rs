//! Does the acts of a session, one after the other.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::driver::Driver;
use super::memory::{self, Activity};
use super::redraw::{Drawn, Next, Redraw};
use super::stop::{Stop, failed};
use super::viewer::{Key, Viewer};
use super::windows::Windows;
use super::{display, programs, screen};
use crate::session::{Act, Event, MemoryUse, Spec};

/// The window manager is asked again after so long.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// A session whose screen is ready.
pub(super) struct Desktop<'s, 'a> {
    spec: &'s Spec,
    viewer: &'static Viewer,
    driver: &'s mut Driver<'a>,
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
    /// The hash of what its window showed last.
    content: u64,
}

/// A drawing to wait for.
#[derive(Clone, Copy)]
struct AwaitedDrawing<'w> {
    window: u32,
    pid: u32,
    requested: Instant,
    until: Instant,
    before: Option<u64>,
    expected: Option<u64>,
    may_stay: bool,
    what: &'w dyn Fn() -> String,
}

impl<'s, 'a> Desktop<'s, 'a> {
    /// A session on a display that is ready.
    pub fn new(
        spec: &'s Spec,
        viewer: &'static Viewer,
        driver: &'s mut Driver<'a>,
        (windows, display): (Windows, String),
    ) -> Self {
        Self { spec, viewer, driver, windows, display, open: vec![None; spec.documents.len()] }
    }

    /// Does one act.
    ///
    /// # Errors
    /// The session has ended, or the display refuses.
    pub fn act(&mut self, act: Act) -> Result<(), Stop> {
        match act {
            Act::Open { document } => {
                self.open(document)?;
                self.report_memory()
            }
            Act::Browse { document, pages, back } => {
                self.browse(document, pages, back)?;
                self.report_memory()
            }
            Act::Switch { document } => self.switch(document),
            Act::Rest { ms } => self.rest(Duration::from_millis(ms)),
        }
    }

    fn open(&mut self, document: usize) -> Result<(), Stop> {
        let file = self.spec.documents.get(document).ok_or_else(|| unknown(document))?;
        if self.open[document].is_some() {
            return Err(failed(format!("document {} is already open", document + 1)));
        }
        if !file.is_file() {
            return Err(failed(format!("there is no document {}", file.display())));
        }
        let what = || format!("the first page of document {}", document + 1);
        let known = self.windows.clients()?;
        let (requested, until) = (Instant::now(), self.until());
        let pid = self.start_viewer(document, file)?;
        let window = self.new_window(&known, until, &what)?;
        self.windows.watch(window)?;
        let maximise = |windows: &Windows| windows.maximise(window);
        self.ask_until(until, &what, maximise, |windows| windows.maximised(window))?;
        self.bring_to_front(window, until, &what)?;
        // The window was damaged before it was watched: count that damage too.
        let mut drawing = AwaitedDrawing {
            window,
            pid,
            requested,
            until,
            before: None,
            expected: None,
            may_stay: false,
            what: &what,
        };
        let Drawn { at, content, .. } = self.first_page(document, &mut drawing)?;
        self.open[document] = Some(Document { pid, window, page: 0, content });
        self.report(&Event::Opened { document, seconds: at.as_secs_f64(), content })
    }

    /// Waits until the first page is drawn and fits the window.
    fn first_page(&mut self, document: usize, drawing: &mut AwaitedDrawing<'_>) -> Result<Drawn, Stop> {
        let since = drawing.requested.elapsed();
        let expected = self.expected(document, 0);
        match self.viewer.fit {
            None => self.wait_for_drawing(&AwaitedDrawing { expected, ..*drawing }, Some(since)),
            Some(key) => {
                let unfit = self.wait_for_drawing(drawing, Some(since))?;
                (drawing.before, drawing.expected) = (Some(unfit.content), expected);
                self.fit(key, drawing, unfit.at)
            }
        }
    }

    /// Presses the viewer's fit key. A key pressed before the window is maximised would fit the page to another size. The
    /// driver's own wait between the two drawings is not counted.
    fn fit(&mut self, key: Key, drawing: &mut AwaitedDrawing<'_>, before: Duration) -> Result<Drawn, Stop> {
        self.windows.damage(drawing.window)?;
        (drawing.requested, drawing.may_stay) = (Instant::now(), true);
        self.windows.press(key)?;
        let drawn = self.wait_for_drawing(drawing, None)?;
        Ok(Drawn { at: before + drawn.at, ..drawn })
    }

    fn start_viewer(&mut self, document: usize, file: &Path) -> Result<u32, Stop> {
        let Viewer { name, programs, package, arguments, .. } = self.viewer;
        let program = programs::find(programs).ok_or_else(|| display::missing(name, programs, package))?;
        let mut command = self.driver.command(program);
        command.args(*arguments).arg(file).env("DISPLAY", &self.display);
        let what = format!("viewer of document {}", document + 1);
        Ok(self.driver.children.start(&what, &mut command, Signal::KILL)?.id())
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
            self.turn_page(document, back)?;
        }
        Ok(())
    }

    /// Waits until the window shows the document's page again: a window that was just brought to the front is redrawn.
    /// The wait is not timed, but ends with the session's patience.
    fn settle(&mut self, document: usize) -> Result<(), Stop> {
        let Document { window, content, .. } = self.document(document)?;
        let requested = Instant::now();
        if self.window_content(window)? == content {
            return Ok(());
        }
        self.wait_for_redraw(document, requested, Some(Duration::ZERO)).map(drop)
    }

    /// Waits until a window shows again what it showed before.
    fn wait_for_redraw(
        &mut self,
        document: usize,
        requested: Instant,
        first_damage: Option<Duration>,
    ) -> Result<Drawn, Stop> {
        let Document { window, pid, content, .. } = self.document(document)?;
        let (until, what) = (self.until(), || format!("the window of document {}", document + 1));
        let drawing = AwaitedDrawing {
            window,
            pid,
            requested,
            until,
            before: None,
            expected: Some(content),
            may_stay: false,
            what: &what,
        };
        let drawn = self.wait_for_drawing(&drawing, first_damage)?;
        self.update(document, |d| d.content = drawn.content);
        Ok(drawn)
    }

    fn turn_page(&mut self, document: usize, back: bool) -> Result<(), Stop> {
        let Document { window, pid, page, content, .. } = self.document(document)?;
        let page = if back { page.checked_sub(1) } else { page.checked_add(1) };
        let page =
            page.ok_or_else(|| failed(format!("document {} has no page before its first", document + 1)))?;
        let what = || format!("page {page} of document {}", document + 1);
        // Discard the damage of the page before.
        self.windows.damage(window)?;
        let (requested, until) = (Instant::now(), self.until());
        self.windows.press(if back { self.viewer.back } else { self.viewer.next })?;
        let expected = self.expected(document, page);
        let drawing = AwaitedDrawing {
            window,
            pid,
            requested,
            until,
            before: Some(content),
            expected,
            may_stay: false,
            what: &what,
        };
        let Drawn { at, content, as_expected } = self.wait_for_drawing(&drawing, None)?;
        self.update(document, |d| (d.page, d.content) = (page, content));
        self.report(&Event::Page { document, page, back, seconds: at.as_secs_f64(), content, as_expected })
    }

    fn switch(&mut self, document: usize) -> Result<(), Stop> {
        let window = self.document(document)?.window;
        self.windows.damage(window)?;
        let requested = Instant::now();
        self.windows.activate(window)?;
        let drawn = self.wait_for_redraw(document, requested, None)?;
        self.report(&Event::Switched { document, seconds: drawn.at.as_secs_f64() })
    }

    fn rest(&mut self, time: Duration) -> Result<(), Stop> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            // A rest never counts as too slow.
            self.driver.wait(None, end + Duration::from_secs(3600), String::new)?;
        }
        Ok(())
    }

    /// Waits until a window is drawn. Reads its content only while it is in front: a covered window shows others.
    fn wait_for_drawing(
        &mut self,
        drawing: &AwaitedDrawing<'_>,
        first_damage: Option<Duration>,
    ) -> Result<Drawn, Stop> {
        let redraw = Redraw::new(drawing.before, drawing.expected);
        let mut redraw = if drawing.may_stay { redraw.may_stay() } else { redraw };
        first_damage.into_iter().for_each(|at| redraw.damage(at));
        let pids = self.working(drawing.pid);
        let mut before = pids.map(activity);
        let mut height = self.document_height(drawing.window)?;
        loop {
            if self.damaged(drawing.window, height)? {
                redraw.damage(drawing.requested.elapsed());
            }
            match redraw.next(drawing.requested.elapsed()) {
                Next::Drawn(drawn) => return Ok(drawn),
                Next::Sample if self.windows.at_the_front(drawing.window)? => {
                    height = self.document_height(drawing.window)?;
                    redraw.sample(self.window_content(drawing.window)?);
                }
                next => self.wait(drawing, next)?,
            }
            let now = pids.map(activity);
            if now.iter().zip(&before).any(|(now, before)| now.since(before)) {
                redraw.work(drawing.requested.elapsed());
            }
            before = now;
        }
    }

    /// Waits until an event comes or the next sample is due, at most a tick.
    fn wait(&mut self, drawing: &AwaitedDrawing<'_>, next: Next) -> Result<(), Stop> {
        let due = match next {
            Next::Wait(due) => drawing.requested + due,
            _ => Instant::now() + Duration::from_millis(5),
        };
        if Instant::now() >= drawing.until {
            return self.driver.wait(None, drawing.until, drawing.what);
        }
        self.driver.wait_briefly(&self.windows, due.min(drawing.until))
    }

    fn wait_until(
        &mut self,
        until: Instant,
        what: &dyn Fn() -> String,
        mut condition: impl FnMut(&Windows) -> Result<bool, Stop>,
    ) -> Result<(), Stop> {
        while !condition(&self.windows)? {
            self.driver.wait(Some(&self.windows), until, what)?;
            // The root window's properties changed; the events themselves carry nothing more.
            self.windows.damage(x11rb::NONE)?;
        }
        Ok(())
    }

    fn bring_to_front(&mut self, window: u32, until: Instant, what: &dyn Fn() -> String) -> Result<(), Stop> {
        let activate = |windows: &Windows| windows.activate(window);
        self.ask_until(until, what, activate, |windows| windows.at_the_front(window))
    }

    /// Asks the window manager until the condition holds. It ignores what is asked of a window that it does not yet manage.
    fn ask_until(
        &mut self,
        until: Instant,
        what: &dyn Fn() -> String,
        ask: impl Fn(&Windows) -> Result<(), Stop>,
        condition: impl Fn(&Windows) -> Result<bool, Stop>,
    ) -> Result<(), Stop> {
        ask(&self.windows)?;
        let mut asked = Instant::now();
        self.wait_until(until, what, |windows| {
            if condition(windows)? {
                return Ok(true);
            }
            if asked.elapsed() >= ASK_AGAIN {
                ask(windows)?;
                asked = Instant::now();
            }
            Ok(false)
        })
    }

    fn damaged(&self, window: u32, height: u16) -> Result<bool, Stop> {
        let damage = self.windows.damage(window)?;
        Ok(damage.iter().any(|area| i32::from(area.y) < i32::from(height)))
    }

    fn document_height(&self, window: u32) -> Result<u16, Stop> {
        Ok(screen::document_height(self.windows.size(window)?.1, self.viewer.status_bar))
    }

    fn window_content(&self, window: u32) -> Result<u64, Stop> {
        screen::content(&self.windows, window, self.viewer.status_bar)
    }

    fn report_memory(&mut self) -> Result<(), Stop> {
        let documents = self.open.iter().flatten().count();
        let mut total = MemoryUse { documents, ..MemoryUse::default() };
        for Document { pid, .. } in self.open.iter().flatten() {
            memory::add(&mut total, &proc(*pid, "status"));
        }
        self.report(&Event::Memory(total))
    }

    /// The processes that draw: the viewer and the X server.
    fn working(&self, viewer: u32) -> [u32; 2] {
        [viewer, self.driver.children.first().unwrap_or(viewer)]
    }

    fn report(&mut self, event: &Event) -> Result<(), Stop> {
        self.driver.report(event)
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

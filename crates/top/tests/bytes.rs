//! The bytes of a refresh: only changed cells are written.

#![allow(clippy::unwrap_used, reason = "test code")]

mod common;

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use common::{refresh, view};
use eke_model::units::Bytes;
use eke_present::refresh::Refresh;
use eke_top::view::Means;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};

#[derive(Clone, Default)]
struct Line(Rc<RefCell<Vec<u8>>>);

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A refresh in which nearly all numbers differ from the one before.
fn restless(step: u64) -> Refresh {
    let mut refresh = refresh(step);
    let other = |most: u64| (step * 7_919 + most * 31) % most;
    let machine = &mut refresh.snapshot.machine;
    for p in [&mut machine.memory_pressure, &mut machine.io_pressure, &mut machine.cpu_pressure]
        .into_iter()
        .flatten()
    {
        (p.some_avg10, p.full_avg10) = (other(990) as f64 / 10.0, other(97) as f64 / 10.0);
        (p.some_avg60, p.full_avg60) = (other(899) as f64 / 10.0, other(89) as f64 / 10.0);
    }
    machine.memory.anonymous = Bytes::mib(1_000 + other(900));
    machine.memory.file_cache = Bytes::mib(200 + other(500));
    let model = &mut refresh.snapshot.model;
    (model.held, model.pool) = (Bytes::mib(400 + other(500)), Bytes::mib(100 + other(300)));
    model.available = Bytes::mib(100 + other(880));
    (model.pages_in_per_s, model.pages_out_per_s) = (other(5_000) as f64, other(3_000) as f64);
    model.kswapd_cpu_share = other(400) as f64 / 1e3;
    refresh
}

/// Bytes of the first frame, and the mean of those after it.
fn bytes(width: u16, height: u16) -> (usize, usize) {
    let line = Line::default();
    let viewport = Viewport::Fixed(Rect::new(0, 0, width, height));
    let mut terminal =
        Terminal::with_options(CrosstermBackend::new(line.clone()), TerminalOptions { viewport }).unwrap();
    let mut view = view(Means { colours: true, ascii: false }, 60);
    terminal.draw(|frame| eke_top::draw(frame, &view)).unwrap();
    let first = line.0.take().len();
    for step in 60..80 {
        view.refresh(Ok(restless(step)), 1_000 * step);
        terminal.draw(|frame| eke_top::draw(frame, &view)).unwrap();
    }
    (first, line.0.take().len() / 20)
}

/// 9600 baud are 960 bytes a second.
#[test]
fn a_refresh_fits_a_slow_line() {
    let (first, then) = bytes(80, 24);
    println!(
        "80x24: {first} bytes for the first frame, then {then} for each refresh in which nearly all numbers change"
    );
    let (large_first, large_then) = bytes(200, 50);
    println!("200x50: {large_first} bytes for the first frame, then {large_then}");
    assert!(then < 960, "{then} bytes for each refresh");
    assert!(then * 2 < first, "{then} of {first} bytes: what did not change is written again");
    assert!(large_then < large_first, "{large_then} of {large_first}");
}

#[test]
fn a_frame_that_is_as_before_writes_no_cell() {
    let line = Line::default();
    let viewport = Viewport::Fixed(Rect::new(0, 0, 80, 24));
    let mut terminal =
        Terminal::with_options(CrosstermBackend::new(line.clone()), TerminalOptions { viewport }).unwrap();
    let view = view(Means { colours: true, ascii: false }, 5);
    terminal.draw(|frame| eke_top::draw(frame, &view)).unwrap();
    line.0.take();
    terminal.draw(|frame| eke_top::draw(frame, &view)).unwrap();
    let again = line.0.take();
    println!("{} bytes for a frame that is as before", again.len());
    assert!(again.len() < 40, "{:?}", String::from_utf8_lossy(&again));
}

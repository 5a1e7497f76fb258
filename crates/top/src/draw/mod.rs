//! A view onto a frame.
//!
//! # Layout
//! - [`places`]: the layout, by the screen's size
//! - [`paint`]: styles, with and without colours
//! - one file for each part: [`head`], [`scarce`], [`memory`], [`remedies`], [`curves`], [`decisions`], [`keys`], [`help`]

pub mod curves;
pub mod decisions;
pub mod head;
pub mod help;
pub mod keys;
pub mod memory;
pub mod paint;
pub mod places;
pub mod remedies;
pub mod scarce;
pub mod title;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Widget;

use crate::ascii;
use crate::view::View;
use eke_present::refresh::Refresh;
use paint::Paint;
use places::{LEAST, Places};

/// Draws the whole screen. The same view gives the same cells.
pub fn draw(frame: &mut Frame<'_>, view: &View) {
    let area = frame.area();
    let buffer = frame.buffer_mut();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        too_small(buffer, area);
    } else {
        match &view.latest {
            Some(refresh) => screen(buffer, area, view, refresh),
            None => empty(buffer, area, view),
        }
    }
    if view.means.ascii {
        ascii::fold(buffer);
    }
}

fn screen(buffer: &mut Buffer, area: Rect, view: &View, refresh: &Refresh) {
    let paint = Paint { colours: view.means.colours };
    let remedies = eke_present::remedies::remedies(refresh);
    let places = Places::of(area, &remedies);
    head::draw(buffer, places.head, view, paint);
    scarce::draw(buffer, places.scarce, refresh, paint);
    memory::draw(buffer, places.memory, refresh, paint);
    remedies::draw(buffer, places.remedies, &remedies, paint);
    if let Some(at) = places.curves {
        curves::draw(buffer, at, view, paint);
    }
    decisions::draw(buffer, places.decisions, view, paint);
    keys::draw(buffer, places.keys, view, paint);
    if view.help {
        help::draw(buffer, area, paint);
    }
}

/// The screen before the first refresh.
fn empty(buffer: &mut Buffer, area: Rect, view: &View) {
    let paint = Paint { colours: view.means.colours };
    let [first, .., last] = rows(area)[..] else { return };
    head::draw(buffer, first, view, paint);
    keys::draw(buffer, last, view, paint);
}

fn too_small(buffer: &mut Buffer, area: Rect) {
    let (columns, lines) = LEAST;
    let sentences = [
        format!("{} x {} is too small:", area.width, area.height),
        format!("eke top needs {columns} x {lines}."),
        "q quits.".to_owned(),
    ];
    for (row, text) in rows(area).into_iter().zip(sentences) {
        put(buffer, row, Line::raw(text));
    }
}

/// Each line of an area.
fn rows(area: Rect) -> Vec<Rect> {
    area.rows().collect()
}

/// Writes a line of text into a row and cuts it at the row's end.
fn put(buffer: &mut Buffer, at: Rect, line: Line<'_>) {
    line.render(at, buffer);
}

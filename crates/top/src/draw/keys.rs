//! The last line: the keys.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::paint::Paint;
use super::put;
use crate::view::View;

/// Draws this part.
pub fn draw(buffer: &mut Buffer, at: Rect, view: &View, paint: Paint) {
    let pause = if view.paused { "go on" } else { "pause" };
    let keys = [("q", "quit"), ("p", pause), ("↑ ↓", "scroll decisions"), ("?", "help")];
    let spans = keys.iter().flat_map(|(key, what)| {
        [Span::styled(format!(" {key} "), paint.key()), Span::raw(format!(" {what}   "))]
    });
    put(buffer, at, Line::from_iter(spans));
}

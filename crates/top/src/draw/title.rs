//! The title line of a part.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::paint::Paint;
use super::put;

/// `── name ─────── heads ──`: the name to the left, column heads at their columns.
pub fn draw(buffer: &mut Buffer, at: Rect, name: &str, heads: &[(u16, &str)], paint: Paint) {
    put(buffer, at, Line::raw("─".repeat(at.width.into())));
    let name = Span::styled(format!(" {name} "), paint.strong());
    put(buffer, Rect { x: at.x + 1, width: at.width.saturating_sub(1), ..at }, name.into());
    for (column, head) in heads.iter().filter(|(column, _)| *column > 0 && *column < at.width) {
        let place = Rect { x: at.x + column - 1, width: at.width - column + 1, ..at };
        put(buffer, place, Line::raw(format!(" {head} ")));
    }
}

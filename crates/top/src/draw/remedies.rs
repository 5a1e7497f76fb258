//! What remedies gain and cost, with details if there are enough lines.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::paint::Paint;
use super::places::DETAILS;
use super::{put, rows, title};
use eke_present::remedies::Remedy;
use eke_present::words::{cut, safe};

const NAME: usize = 10;
/// The columns of the cost: this many, or a third of the width if that is more.
const COST: usize = 26;

/// Draws this part.
pub fn draw(buffer: &mut Buffer, at: Rect, remedies: &[Remedy], paint: Paint) {
    let rows = rows(at);
    let Some((first, lines)) = rows.split_first() else { return };
    let width = usize::from(at.width);
    let cost_at = width - COST.max(width / 3);
    title::draw(buffer, *first, "remedies", &[(NAME as u16 + 2, "gained"), (cost_at as u16, "cost")], paint);
    let has_room = lines.len() > remedies.len();
    let all = remedies.iter().flat_map(|r| {
        let details: Vec<Line<'_>> = if has_room { details(r, width) } else { Vec::new() };
        std::iter::once(line(r, cost_at, width, paint)).chain(details)
    });
    for (row, line) in lines.iter().zip(all) {
        put(buffer, *row, line);
    }
}

fn line(r: &Remedy, cost_at: usize, width: usize, paint: Paint) -> Line<'static> {
    // A line without a cost may use the cost's columns.
    let gained_width = if r.cost.is_empty() { width - NAME - 2 } else { cost_at - NAME - 3 };
    let gained = cut(&safe(&r.gained), gained_width);
    let style = if r.cost.is_empty() { ratatui::style::Style::new() } else { paint.gain() };
    Line::from(vec![
        Span::styled(format!("  {:<NAME$}", r.name), paint.strong()),
        Span::styled(format!("{gained:<gained_width$}"), style),
        Span::raw(" "),
        Span::raw(cut(&safe(&r.cost), width - cost_at)),
    ])
}

fn details(r: &Remedy, width: usize) -> Vec<Line<'static>> {
    let line = |text: &String| Line::raw(format!("  {:<NAME$}{}", "", cut(&safe(text), width - NAME - 2)));
    let mut lines: Vec<Line<'_>> = r.details.iter().take(DETAILS).map(line).collect();
    if r.details.len() > DETAILS {
        let where_to = if r.name == "cache" { "eke cache status" } else { "eke status --json" };
        let more = format!("and {} more: {where_to}", r.details.len() + 1 - DETAILS);
        lines[DETAILS - 1] = line(&more);
    }
    lines
}

//! What is scarce: words, bars, and the kernel's figures.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::paint::Paint;
use super::{put, rows, title};
use crate::bar::gauge;
use eke_present::refresh::Refresh;
use eke_present::scarce::{Resource, names, resources, sentence};

const NAME: usize = 14;
const WORD: usize = 12;
/// Four figures of nine columns.
const FIGURES: u16 = 36;

/// Draws them.
pub fn draw(buffer: &mut Buffer, at: Rect, look: &Refresh, paint: Paint) {
    let column = |n: u16| at.width.saturating_sub(FIGURES) + 9 * n;
    let heads = [
        (column(0) + 1, "some 10s"),
        (column(1) + 2, "all 10s"),
        (column(2) + 1, "some 60s"),
        (column(3) + 2, "all 60s"),
    ];
    let name = name(look, column(0).into());
    let rows = rows(at);
    let Some((first, lines)) = rows.split_first() else { return };
    title::draw(buffer, *first, &name, &heads, paint);
    for (row, resource) in lines.iter().zip(resources(&look.snapshot)) {
        put(buffer, *row, line(&resource, usize::from(at.width), paint));
    }
}

/// With how much where that fits before `column`; the lines below say it in any case.
fn name(look: &Refresh, column: usize) -> String {
    let long = format!("short of: {}", sentence(&look.snapshot));
    if long.chars().count() + 3 <= column { long } else { format!("short of: {}", names(&look.snapshot)) }
}

fn line(r: &Resource, width: usize, paint: Paint) -> Line<'static> {
    let style = paint.level(r.level);
    let sign = if r.level.is_short() { '!' } else { ' ' };
    let mut spans = vec![
        Span::styled(format!("{sign} {:<NAME$} ", r.name), paint.strong()),
        Span::styled(format!("{:<WORD$}", r.level.word()), style),
    ];
    let Some(p) = r.pressure else { return Line::from(spans) };
    let bar = width.saturating_sub(2 + NAME + 1 + WORD + 2 + usize::from(FIGURES));
    spans.push(Span::raw("["));
    spans.push(Span::styled(gauge(p.some_avg10 / 100.0, bar), style));
    let all = |share| if r.name == "CPU" { format!("{:>9}", "-") } else { figure(share) };
    let figures = [figure(p.some_avg10), all(p.full_avg10), figure(p.some_avg60), all(p.full_avg60)];
    spans.push(Span::raw(format!("]{}", figures.concat())));
    Line::from(spans)
}

fn figure(percent: f64) -> String {
    format!("{percent:>7.1} %")
}

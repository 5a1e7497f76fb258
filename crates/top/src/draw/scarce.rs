//! Scarce resources: words, bars, and the kernel's numbers.

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
/// Four numbers of nine columns.
const NUMBERS: u16 = 36;

/// Draws this part.
pub fn draw(buffer: &mut Buffer, at: Rect, refresh: &Refresh, paint: Paint) {
    let column = |n: u16| at.width.saturating_sub(NUMBERS) + 9 * n;
    let heads = [
        (column(0) + 1, "some 10s"),
        (column(1) + 2, "all 10s"),
        (column(2) + 1, "some 60s"),
        (column(3) + 2, "all 60s"),
    ];
    let name = name(refresh, column(0).into());
    let rows = rows(at);
    let Some((first, lines)) = rows.split_first() else { return };
    title::draw(buffer, *first, &name, &heads, paint);
    for (row, resource) in lines.iter().zip(resources(&refresh.snapshot)) {
        put(buffer, *row, line(&resource, usize::from(at.width), paint));
    }
}

/// The title, with levels if they fit before `column`; the lines below also show them.
fn name(refresh: &Refresh, column: usize) -> String {
    let long = format!("short of: {}", sentence(&refresh.snapshot));
    if long.chars().count() + 3 <= column { long } else { format!("short of: {}", names(&refresh.snapshot)) }
}

fn line(r: &Resource, width: usize, paint: Paint) -> Line<'static> {
    let style = paint.level(r.level);
    let sign = if r.level.is_short() { '!' } else { ' ' };
    let mut spans = vec![
        Span::styled(format!("{sign} {:<NAME$} ", r.name), paint.strong()),
        Span::styled(format!("{:<WORD$}", r.level.word()), style),
    ];
    let Some(p) = r.pressure else { return Line::from(spans) };
    let bar = width.saturating_sub(2 + NAME + 1 + WORD + 2 + usize::from(NUMBERS));
    spans.push(Span::raw("["));
    spans.push(Span::styled(gauge(p.some_avg10 / 100.0, bar), style));
    let all = |share| if r.name == "CPU" { format!("{:>9}", "-") } else { share_text(share) };
    let numbers = [share_text(p.some_avg10), all(p.full_avg10), share_text(p.some_avg60), all(p.full_avg60)];
    spans.push(Span::raw(format!("]{}", numbers.concat())));
    Line::from(spans)
}

fn share_text(percent: f64) -> String {
    format!("{percent:>7.1} %")
}

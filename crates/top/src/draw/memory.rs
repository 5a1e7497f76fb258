//! RAM as a stacked bar, the legend of its parts, and the swap traffic.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::paint::Paint;
use super::{put, rows, title};
use crate::bar::columns;
use eke_present::memory::{POOL, Part, parts};
use eke_present::refresh::Refresh;
use eke_present::remedies::holds_something;
use eke_present::scarce::is_in_a_group;

/// Draws this part.
pub fn draw(buffer: &mut Buffer, at: Rect, refresh: &Refresh, paint: Paint) {
    let [first, bar_row, names, traffic_row] = rows(at)[..] else { return };
    let m = &refresh.snapshot.model;
    let whose = if is_in_a_group(&refresh.snapshot) { "; tasks wait in a group with a limit" } else { "" };
    title::draw(buffer, first, &format!("memory: {} of {} available{whose}", m.available, m.ram), &[], paint);
    let parts = parts(&refresh.snapshot);
    put(buffer, bar_row, bar(&parts, usize::from(at.width), paint));
    put(buffer, names, legend(&parts, paint));
    put(buffer, traffic_row, traffic(refresh, &parts[POOL], paint));
}

fn bar(parts: &[Part], width: usize, paint: Paint) -> Line<'static> {
    let sizes: Vec<u64> = parts.iter().map(|p| p.size.0).collect();
    let spans = parts.iter().zip(columns(&sizes, width)).enumerate().map(|(i, (part, columns))| {
        Span::styled(String::from_iter(std::iter::repeat_n(part.symbol, columns)), paint.part(i))
    });
    Line::from_iter(spans)
}

/// All parts but the pool, which is on the next line.
fn legend(parts: &[Part], paint: Paint) -> Line<'static> {
    let others = parts.iter().enumerate().filter(|(i, _)| *i != POOL);
    Line::from_iter(others.flat_map(|(i, part)| named(i, part, paint)))
}

fn named(number: usize, part: &Part, paint: Paint) -> [Span<'static>; 2] {
    let sign = Span::styled(part.symbol.to_string(), paint.part(number));
    [sign, Span::raw(format!(" {} {}  ", part.name, part.size))]
}

/// The pool's content, and the pages that go in and out.
fn traffic(refresh: &Refresh, pool: &Part, paint: Paint) -> Line<'static> {
    let m = &refresh.snapshot.model;
    let holds = if holds_something(&refresh.snapshot) { m.held.to_string() } else { "nothing".into() };
    let rest = format!(
        "holds {holds}; pages in {:.0}/s, out {:.0}/s; OOM kills {}",
        m.pages_in_per_s, m.pages_out_per_s, m.oom_kills
    );
    let [sign, name] = named(POOL, pool, paint);
    Line::from(vec![sign, Span::raw(name.content.trim_end().to_owned() + " "), Span::raw(rest)])
}

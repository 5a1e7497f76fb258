//! RAM as a stacked bar, its parts with their signs, and the traffic.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::paint::Paint;
use super::{put, rows, title};
use crate::bar::columns;
use crate::gains::holds_something;
use crate::look::Look;
use crate::split::{Part, parts};

/// Draws them.
pub fn draw(buffer: &mut Buffer, at: Rect, look: &Look, paint: Paint) {
    let [first, bar_row, names, traffic_row] = rows(at)[..] else { return };
    let m = &look.snapshot.model;
    title::draw(buffer, first, &format!("memory: {} of {} available", m.available, m.ram), &[], paint);
    let parts = parts(&look.snapshot);
    put(buffer, bar_row, bar(&parts, usize::from(at.width), paint));
    put(buffer, names, legend(&parts, paint));
    put(buffer, traffic_row, Line::raw(traffic(look)));
}

fn bar(parts: &[Part], width: usize, paint: Paint) -> Line<'static> {
    let sizes: Vec<u64> = parts.iter().map(|p| p.size.0).collect();
    let spans = parts.iter().zip(columns(&sizes, width)).enumerate().map(|(i, (part, columns))| {
        Span::styled(String::from_iter(std::iter::repeat_n(part.symbol, columns)), paint.part(i))
    });
    Line::from_iter(spans)
}

fn legend(parts: &[Part], paint: Paint) -> Line<'static> {
    let spans = parts.iter().enumerate().flat_map(|(i, part)| {
        let gap = if i == 0 { "" } else { "  " };
        [
            Span::raw(gap),
            Span::styled(part.symbol.to_string(), paint.part(i)),
            Span::raw(format!(" {} {}", part.name, part.size)),
        ]
    });
    Line::from_iter(spans)
}

fn traffic(look: &Look) -> String {
    let m = &look.snapshot.model;
    let pool = if holds_something(&look.snapshot) {
        format!("pool holds {} of pages", m.held)
    } else {
        "pool holds nothing".into()
    };
    format!(
        "{pool}; pages/s in {:.0}, out {:.0}; major faults/s {:.0}; OOM kills {}",
        m.pages_in_per_s, m.pages_out_per_s, m.major_faults_per_s, m.oom_kills
    )
}

//! The agent's decisions with their reasons, newest first.

use eke_model::snapshot::Event;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::paint::Paint;
use super::{put, rows, title};
use crate::view::{Agent, View};
use eke_present::words::{time, wrapped};

const AGE: usize = 9;

/// Draws as many as fit.
pub fn draw(buffer: &mut Buffer, at: Rect, view: &View, paint: Paint) {
    let rows = rows(at);
    let Some((first, lines)) = rows.split_first() else { return };
    title::draw(buffer, *first, &name(view), &[], paint);
    let now_s = view.latest.as_ref().map_or(0, |l| l.snapshot.unix_s);
    let shown = view.decisions.iter().skip(view.scrolled);
    let all = shown.flat_map(|e| sentence(e, now_s, usize::from(at.width)));
    for (row, text) in lines.iter().zip(all) {
        put(buffer, *row, Line::raw(text));
    }
}

fn name(view: &View) -> String {
    let count = view.decisions.len();
    match (&view.agent, count) {
        (Agent::Gone { .. }, 1..) => format!("decisions: the agent's last {count}"),
        (Agent::None, 0) => "decisions: none, as no agent runs".into(),
        (_, 0) => "decisions: none".into(),
        (_, _) => format!("decisions: {} to {count} of {count}, newest first", view.scrolled + 1),
    }
}

fn sentence(event: &Event, now_s: u64, width: usize) -> Vec<String> {
    let age = time(now_s.saturating_sub(event.unix_s));
    wrapped(&format!("{age:>7}  {}", event.text), width, AGE)
}

//! The first line: the agent, or what is wrong with it.

use eke_model::snapshot::AgentState;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::paint::Paint;
use super::put;
use crate::view::{Agent, View};
use eke_present::words::{cut, time};

/// Draws this part.
pub fn draw(buffer: &mut Buffer, at: Rect, view: &View, paint: Paint) {
    let right = right(view);
    let width = usize::from(at.width).saturating_sub("eke top  ".len() + right.chars().count() + 1);
    let state = match view.trouble() {
        Some(trouble) => Span::styled(cut(&format!("! {trouble}"), width), paint.trouble()),
        None => Span::raw(cut(&agent(view), width)),
    };
    put(buffer, at, Line::from(vec![Span::styled("eke top", paint.strong()), Span::raw("  "), state]));
    let right_width = right.chars().count() as u16;
    let x = at.x + at.width.saturating_sub(right_width);
    put(
        buffer,
        Rect { x, width: right_width.min(at.width), ..at },
        Span::styled(right, paint.strong()).into(),
    );
}

fn right(view: &View) -> String {
    if view.paused {
        return "PAUSED (p)".into();
    }
    let s = view.every_ms as f64 / 1e3;
    format!("every {s} s")
}

fn agent(view: &View) -> String {
    let state = view.latest.as_ref().and_then(|l| l.snapshot.agent.as_ref());
    match (&view.agent, state) {
        (Agent::Unasked, _) | (_, None) => "asking the agent ...".into(),
        (_, Some(agent)) => answering(agent),
    }
}

fn answering(a: &AgentState) -> String {
    let share = a.cpu_ms as f64 / (1_000.0 * a.up_s.max(1) as f64);
    format!("agent {}, up {}, {} resident, {:.3} % of a CPU", a.pid, time(a.up_s), a.resident, 100.0 * share)
}

//! The last minutes as curves: one line each, or four if there is room.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Sparkline, Widget};

use super::paint::Paint;
use super::{put, title};
use crate::history::{CURVES, Curve, History};
use crate::view::View;

const NAME: u16 = 18;
const NUMBERS: u16 = 28;
/// The resolution of a curve.
const STEPS: f64 = 1_000.0;

/// Draws this part.
pub fn draw(buffer: &mut Buffer, at: Rect, view: &View, paint: Paint) {
    let history = &view.history;
    let name = format!("the last {} samples, {} s apart", history.len(), view.every_ms as f64 / 1e3);
    title::draw(buffer, Rect { height: 1, ..at }, &name, &[], paint);
    let body = Rect { y: at.y + 1, height: at.height.saturating_sub(1), ..at };
    let each = (body.height / CURVES.len() as u16).clamp(1, 4);
    for (number, curve) in CURVES.iter().enumerate() {
        let y = body.y + number as u16 * each;
        if y + each > body.bottom() {
            return;
        }
        one(buffer, Rect { y, height: each, ..body }, number, curve, history, paint);
    }
}

/// A name, the curve and its numbers; with more than one line the name has a line of its own.
fn one(buffer: &mut Buffer, at: Rect, number: usize, curve: &Curve, history: &History, paint: Paint) {
    let (text, place) = if at.height > 1 {
        (Rect { height: 1, ..at }, Rect { y: at.y + 1, height: at.height - 1, ..at })
    } else {
        let inner = at.width.saturating_sub(NAME + NUMBERS);
        (at, Rect { x: at.x + NAME, width: inner, ..at })
    };
    let values = history.values(number, place.width.into());
    let most = values.iter().flatten().copied().fold(curve.at_least, f64::max);
    let numbers = numbers(curve, &values);
    put(buffer, text, Span::styled(format!("{:<1$}", curve.name, usize::from(NAME)), paint.strong()).into());
    let x = if at.height > 1 { text.x + NAME } else { place.right() + 1 };
    put(buffer, Rect { x, width: at.right().saturating_sub(x), ..text }, Line::raw(numbers));
    spark(buffer, place, &values, most);
}

/// The newest value is at the right edge.
fn spark(buffer: &mut Buffer, at: Rect, values: &[Option<f64>], most: f64) {
    let data: Vec<u64> = values.iter().map(|v| (STEPS * v.unwrap_or(0.0) / most).round() as u64).collect();
    let width = (data.len() as u16).min(at.width);
    let place = Rect { x: at.right() - width, width, ..at };
    Sparkline::default().data(data).max(STEPS as u64).render(place, buffer);
}

fn numbers(curve: &Curve, values: &[Option<f64>]) -> String {
    let known = || values.iter().flatten().copied();
    let Some(newest) = values.last().copied().flatten() else {
        return known().last().map_or("not known".into(), |_| "nothing now".into());
    };
    let most = known().fold(f64::MIN, f64::max);
    format!("{:>9}, most {:>9}", curve.unit.text(newest), curve.unit.text(most))
}

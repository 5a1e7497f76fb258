//! The layout of the screen.

use ratatui::layout::Rect;

use crate::history::CURVES;
use eke_present::remedies::Remedy;

/// The smallest usable screen, in columns and lines.
pub const LEAST: (u16, u16) = (60, 18);
/// From this size on details and curves are shown.
const SOME: (u16, u16) = (100, 34);
/// From this size on the curves are beside the rest.
const MUCH: (u16, u16) = (170, 40);
/// The width of the left side with curves beside it.
const LEFT: u16 = 112;
/// A title and its lines.
const SCARCE: u16 = 1 + 3;
const MEMORY: u16 = 1 + 3;
/// The most lines of details of one remedy (a user can have many mounts).
pub const DETAILS: usize = 4;
/// Decisions always have their title and some lines.
const DECISIONS_AT_LEAST: u16 = 4;

/// The parts, from top to bottom; decisions get the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places {
    /// The agent's state.
    pub head: Rect,
    /// Scarce resources.
    pub scarce: Rect,
    /// How RAM is split.
    pub memory: Rect,
    /// What remedies gain and cost.
    pub remedies: Rect,
    /// Curves, if there is room.
    pub curves: Option<Rect>,
    /// The agent's decisions.
    pub decisions: Rect,
    /// The keys.
    pub keys: Rect,
}

impl Places {
    /// The layout for a screen of at least [`LEAST`].
    pub fn of(area: Rect, remedies: &[Remedy]) -> Self {
        let (head, rest) = split_top(area, 1);
        let (rest, keys) = split_top(rest, rest.height - 1);
        let details = fits(area, SOME);
        let beside = fits(area, MUCH);
        let left = Rect { width: if beside { LEFT } else { rest.width }, ..rest };
        let (scarce, rest_of_left) = split_top(left, SCARCE);
        let (memory, rest_of_left) = split_top(rest_of_left, MEMORY);
        let (remedies, rest_of_left) = split_top(rest_of_left, remedy_lines(remedies, details));
        let top = rest_of_left.y - rest.y;
        if beside {
            let height = top.max(1 + 4 * CURVES.len() as u16).min(rest.height - DECISIONS_AT_LEAST);
            let (right, decisions) = split_top(rest, height);
            let curves = Rect { x: right.x + LEFT + 2, width: right.width - LEFT - 2, ..right };
            return Self { head, scarce, memory, remedies, curves: Some(curves), decisions, keys };
        }
        let lower = Rect { height: rest.height - top, ..rest_of_left };
        let needed = if details { 1 + CURVES.len() as u16 } else { 0 };
        let has_room = needed > 0 && lower.height >= needed + DECISIONS_AT_LEAST;
        let (curves, decisions) = split_top(lower, if has_room { needed } else { 0 });
        Self { head, scarce, memory, remedies, curves: has_room.then_some(curves), decisions, keys }
    }
}

fn fits(area: Rect, (width, height): (u16, u16)) -> bool {
    area.width >= width && area.height >= height
}

/// The lines of the remedies: a title, a line for each, and details.
fn remedy_lines(remedies: &[Remedy], details: bool) -> u16 {
    let details = if details { remedies.iter().map(|r| r.details.len().min(DETAILS)).sum() } else { 0 };
    (1 + remedies.len() + details) as u16
}

/// The first `height` lines, and the rest.
fn split_top(area: Rect, height: u16) -> (Rect, Rect) {
    let height = height.min(area.height);
    (Rect { height, ..area }, Rect { y: area.y + height, height: area.height - height, ..area })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remedies(details: usize) -> Vec<Remedy> {
        let one = |name| Remedy {
            name,
            gained: String::new(),
            cost: String::new(),
            details: vec![String::new(); details],
        };
        ["swap", "cache", "prefetch", "reads"].map(one).to_vec()
    }

    fn all(p: &Places) -> Vec<Rect> {
        let mut all = vec![p.head, p.scarce, p.memory, p.remedies, p.decisions, p.keys];
        all.extend(p.curves);
        all
    }

    proptest::proptest! {
        #[test]
        fn parts_are_on_the_screen_and_do_not_overlap(width in LEAST.0..400u16, height in LEAST.1..200u16, details in 0usize..9) {
            let area = Rect::new(0, 0, width, height);
            let places = all(&Places::of(area, &remedies(details)));
            for (i, a) in places.iter().enumerate() {
                proptest::prop_assert_eq!(a.intersection(area), *a);
                for b in &places[i + 1..] {
                    proptest::prop_assert!(!a.intersects(*b), "{:?} {:?}", a, b);
                }
            }
        }
    }

    #[test]
    fn more_room_shows_more() {
        let curves = |width, height| Places::of(Rect::new(0, 0, width, height), &remedies(2)).curves;
        assert_eq!(curves(80, 24), None);
        assert_eq!(curves(120, 40).map(|c| (c.x, c.height)), Some((0, 9)));
        assert_eq!(curves(200, 50).map(|c| (c.x, c.width)), Some((114, 86)));
        let small = Places::of(Rect::new(0, 0, 80, 24), &remedies(2));
        assert_eq!((small.remedies.height, small.decisions.height), (5, 9));
    }
}

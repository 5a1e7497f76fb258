//! Places names beside points so that none covers another.

/// A rectangle in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Area {
    /// Its left end.
    pub left: f64,
    /// Its top.
    pub top: f64,
    /// Its width.
    pub width: f64,
    /// Its height.
    pub height: f64,
}

impl Area {
    /// The square around a point.
    pub fn around((x, y): (f64, f64), half: f64) -> Self {
        Self { left: x - half, top: y - half, width: 2.0 * half, height: 2.0 * half }
    }

    fn meets(&self, other: &Self) -> bool {
        self.left < other.left + other.width
            && other.left < self.left + self.width
            && self.top < other.top + other.height
            && other.top < self.top + self.height
    }

    fn holds(&self, other: &Self) -> bool {
        other.left >= self.left
            && other.top >= self.top
            && other.left + other.width <= self.left + self.width
            && other.top + other.height <= self.top + self.height
    }
}

const HEIGHT: f64 = 15.0;
const GAP: f64 = 8.0;

/// The area of each name, given its point and width: the nearest one within `room` that covers neither another name nor a `taken` area. If
/// none is free, the nearest one within `room`.
pub fn place(names: &[((f64, f64), f64)], room: Area, taken: &[Area]) -> Vec<Area> {
    let mut taken = taken.to_vec();
    let mut places = Vec::new();
    for (point, width) in names {
        let inside = || candidates(*point, *width).filter(|c| room.holds(c));
        let free = inside().find(|c| !taken.iter().any(|t| t.meets(c)));
        let area = free.or_else(|| inside().next()).unwrap_or(Area {
            left: (point.0 - width / 2.0).clamp(room.left, (room.left + room.width - width).max(room.left)),
            top: point.1 + GAP,
            width: *width,
            height: HEIGHT,
        });
        taken.push(area);
        places.push(area);
    }
    places
}

/// Areas to the right, to the left and centred; then further up and down.
fn candidates((x, y): (f64, f64), width: f64) -> impl Iterator<Item = Area> {
    let columns = [x + GAP, x - GAP - width, x - width / 2.0];
    let rows = (0..14).map(move |i| {
        let away = f64::from((i + 1) / 2) * (HEIGHT / 2.0);
        y - HEIGHT / 2.0 + if i % 2 == 0 { away } else { -away }
    });
    rows.flat_map(move |top| columns.map(|left| Area { left, top, width, height: HEIGHT }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_near_points_do_not_cover_each_other() {
        let room = Area { left: 0.0, top: 0.0, width: 400.0, height: 200.0 };
        let points = [(100.0, 100.0), (104.0, 102.0), (98.0, 96.0), (390.0, 100.0)];
        let taken: Vec<Area> = points.iter().map(|p| Area::around(*p, 4.0)).collect();
        let places = place(&points.map(|p| (p, 80.0)), room, &taken);
        for (i, a) in places.iter().enumerate() {
            assert!(room.holds(a), "{a:?}");
            assert!(places.iter().skip(i + 1).chain(&taken).all(|b| !a.meets(b)), "{a:?} in {places:?}");
        }
    }
}

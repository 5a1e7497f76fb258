//! What is drawn of a group of rows: chosen by the data's shape, pure.

use crate::report::groups::{Group, Member, ends, is_distribution, quantile};
use crate::report::words::{self, shown, signed};
use crate::report::{Role, Row};

/// Values further apart than this many times cannot be seen side by side on a linear scale.
const LOGARITHMIC_FROM: f64 = 50.0;

/// One plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What it shows, in a few words.
    pub title: String,
    /// How to read it.
    pub about: &'static str,
    /// What its values are in.
    pub unit: String,
    /// On a logarithmic scale?
    pub logarithmic: bool,
    /// What is drawn.
    pub shape: Shape,
}

/// What is drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// A bar up to each median, and every sample.
    Bars(Vec<Lane>),
    /// Many samples, as strokes.
    Strips(Vec<Lane>),
    /// Differences from ours, around zero.
    Differences(Vec<Lane>),
    /// Values over a number.
    Curve(Curve),
}

/// One variant beside the others.
#[derive(Debug, Clone, PartialEq)]
pub struct Lane {
    /// Whose.
    pub name: String,
    /// For its colour.
    pub role: Role,
    /// What is drawn of it.
    pub samples: Vec<f64>,
    /// The middle of them; `None` without samples.
    pub median: Option<f64>,
    /// Its figures in words.
    pub text: String,
}

/// Values over a number.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// What the number is: `swap, MiB`.
    pub over: String,
    /// One for each variant.
    pub lines: Vec<Line>,
}

/// The values of one variant, in the order of their places.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Whose.
    pub name: String,
    /// For its colour.
    pub role: Role,
    /// At least one.
    pub points: Vec<Point>,
}

/// The samples at one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Where.
    pub at: f64,
    /// All of them.
    pub samples: Vec<f64>,
    /// The middle of them.
    pub median: f64,
}

/// The figures of a group: one of the variants, and one of what each lever does.
pub fn figures(group: &Group<'_>) -> Vec<Figure> {
    let is_lever = |m: &Member<'_>| m.role == Role::Lever && !m.row.samples.is_empty();
    let compared = group.members.iter().any(|m| is_lever(m) && group.ours(m.row).is_some());
    let others = |m: &&Member<'_>| !compared || m.role != Role::Lever;
    let main: Vec<&Member<'_>> = group.members.iter().filter(others).collect();
    let levers = compared.then(|| differences(group));
    let curve = group.sweep.is_some().then(|| curve(group, &main)).flatten();
    let main = curve.unwrap_or_else(|| lanes(group, &main));
    std::iter::once(main).chain(levers).collect()
}

fn title(group: &Group<'_>) -> String {
    let parts = [group.metric.name.as_str(), group.conditions.as_str()];
    parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join(", ")
}

fn lanes(group: &Group<'_>, members: &[&Member<'_>]) -> Figure {
    let many = members.iter().any(|m| is_distribution(m.row));
    let lane = |m: &&Member<'_>| {
        let name = match (&group.sweep, group.place(m.row)) {
            (Some(sweep), Some(place)) => {
                format!("{}, {}", m.label, words::parameter(&sweep.key, &place.into()))
            }
            _ => m.label.clone(),
        };
        let text = if many { many_words(m.row) } else { words(m.row) };
        lane(name, m.role, m.row.samples.clone(), m.row.median, text)
    };
    let lanes: Vec<Lane> = members.iter().map(lane).collect();
    let (title, unit) = (title(group), group.unit.to_owned());
    if many {
        let about = "Each stroke is one sample, the box holds the middle half, the line is the median.";
        return Figure { title, about, unit, logarithmic: true, shape: Shape::Strips(lanes) };
    }
    let logarithmic = is_wide(members.iter().map(|m| m.row));
    let about = if logarithmic {
        "The line is the median, each dot a run. The scale is logarithmic: a bar twice as long is not twice as much."
    } else {
        "The bar ends at the median, each dot is a run."
    };
    Figure { title, about, unit, logarithmic, shape: Shape::Bars(lanes) }
}

fn lane(name: String, role: Role, samples: Vec<f64>, median: f64, text: String) -> Lane {
    let median = (!samples.is_empty()).then_some(median);
    Lane { name, role, samples, median, text }
}

fn words(row: &Row) -> String {
    let (low, high) = ends(&row.samples);
    match row.samples.len() {
        0 => "no figure".into(),
        1 => words::with_unit(row.median, &row.unit),
        _ => format!("{} ({} to {})", words::with_unit(row.median, &row.unit), shown(low), shown(high)),
    }
}

fn many_words(row: &Row) -> String {
    let most = quantile(&row.samples, 1.0);
    most.map_or("no figure".into(), |most| {
        format!("median {}, max {}", shown(row.median), words::with_unit(most, &row.unit))
    })
}

/// Are the values above zero, and too far apart for a linear scale?
/// Shares of a whole are seen beside the whole, however small some are.
fn is_wide<'a>(rows: impl Iterator<Item = &'a Row> + Clone) -> bool {
    if rows.clone().all(|r| r.unit == "%") {
        return false;
    }
    let (low, high) = rows.map(|r| ends(&r.samples)).fold(ends(&[]), |a, b| (a.0.min(b.0), a.1.max(b.1)));
    low > 0.0 && high / low > LOGARITHMIC_FROM
}

/// What each lever changes: its samples less the median of ours; and ours, to see what repeats differ by.
fn differences(group: &Group<'_>) -> Figure {
    let wanted = |m: &&Member<'_>| m.role == Role::Lever || is_ours(group, m);
    let lane = |m: &Member<'_>| {
        let ours = group.ours(m.row).map_or(0.0, |r| r.median);
        let samples: Vec<f64> = m.row.samples.iter().map(|s| s - ours).collect();
        let difference = m.row.median - ours;
        let text = match (m.role, samples.len()) {
            (_, 0) => "no figure".into(),
            (Role::Ours, _) => format!("as it is: {}", words::with_unit(ours, group.unit)),
            _ if ours == 0.0 => format!("{} {}", signed(difference), group.unit),
            _ => {
                let percent = signed((100.0 * difference / ours).round());
                format!("{} {} ({percent} %)", signed(difference), group.unit)
            }
        };
        lane(m.label.clone(), m.role, samples, difference, text)
    };
    let lanes = group.members.iter().filter(wanted).map(lane).collect();
    Figure {
        title: format!("{}: what each lever changes", title(group)),
        about: "eke with one thing changed, less eke's median. The line is the median, each dot a run; dots of eke itself show what repeats differ by.",
        unit: group.unit.to_owned(),
        logarithmic: false,
        shape: Shape::Differences(lanes),
    }
}

/// Is it ours that some lever is beside?
fn is_ours(group: &Group<'_>, member: &Member<'_>) -> bool {
    let levers = group.members.iter().filter(|m| m.role == Role::Lever);
    member.role == Role::Ours
        && levers.into_iter().any(|m| group.ours(m.row).is_some_and(|r| std::ptr::eq(r, member.row)))
}

/// `None` where fewer than two places are known.
fn curve(group: &Group<'_>, members: &[&Member<'_>]) -> Option<Figure> {
    let mut lines: Vec<Line> = Vec::new();
    for member in members.iter().filter(|m| !m.row.samples.is_empty()) {
        let Some(at) = group.place(member.row) else { continue };
        let point = Point { at, samples: member.row.samples.clone(), median: member.row.median };
        match lines.iter_mut().find(|l| l.name == member.label) {
            Some(line) => line.points.push(point),
            None => {
                lines.push(Line { name: member.label.clone(), role: member.role, points: vec![point] });
            }
        }
    }
    let mut places: Vec<f64> = lines.iter().flat_map(|l| l.points.iter().map(|p| p.at)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let (name, unit) = words::key_words(&group.sweep.as_ref()?.key);
    let over = if unit.is_empty() { name } else { format!("{name}, {unit}") };
    (places.len() > 1).then(|| Figure {
        title: title(group),
        about: "Each variant at its own place: the ring is the median, each dot a run.",
        unit: group.unit.to_owned(),
        logarithmic: is_wide(members.iter().map(|m| m.row)),
        shape: Shape::Curve(Curve { over, lines }),
    })
}

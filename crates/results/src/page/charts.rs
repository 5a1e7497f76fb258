//! The charts of a group of rows, chosen by the shape of the data. Pure.

use eke_plot::chart::{Category, Chart, Curve, Line, Point, Shape};
use eke_statistics::{quantile, range};

use crate::report::groups::{Group, Member};
use crate::report::words::{self, shown, signed};
use crate::report::{Role, Row};

/// From this ratio of the greatest to the least value a linear scale hides the small ones.
const LOGARITHMIC_FROM: f64 = 50.0;

/// The charts of a group: one of the variants and, if there are variations of eke, one of their differences.
pub fn charts(group: &Group<'_>) -> Vec<Chart> {
    let is_variation = |m: &Member<'_>| m.role == Role::Variation && !m.row.samples.is_empty();
    let compared = group.members.iter().any(|m| is_variation(m) && group.ours(m.row).is_some());
    let others = |m: &&Member<'_>| !compared || m.role != Role::Variation;
    let main: Vec<&Member<'_>> = group.members.iter().filter(others).collect();
    let variations = compared.then(|| differences(group));
    let curve = group.sweep.is_some().then(|| curve(group, &main)).flatten();
    let main = curve.unwrap_or_else(|| categories(group, &main));
    std::iter::once(main).chain(variations).collect()
}

fn title(group: &Group<'_>) -> String {
    let parts = [group.metric.name.as_str(), group.conditions.as_str()];
    parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join(", ")
}

fn categories(group: &Group<'_>, members: &[&Member<'_>]) -> Chart {
    let many = members.iter().any(|m| m.row.is_distribution());
    let one = |m: &&Member<'_>| {
        let name = match (&group.sweep, group.place(m.row)) {
            (Some(sweep), Some(place)) => {
                format!("{}, {}", m.label, words::parameter(&sweep.key, &place.into()))
            }
            _ => m.label.clone(),
        };
        let text = if many { many_words(m.row) } else { words(m.row) };
        category(name, m.role, m.row.samples.clone(), m.row.median, text)
    };
    let categories: Vec<Category> = members.iter().map(one).collect();
    let (title, unit) = (title(group), group.unit.to_owned());
    if many {
        let about = "Each stroke is one sample, the box holds the middle half, the line is the median.";
        return Chart { title, about, unit, logarithmic: true, shape: Shape::Strips(categories) };
    }
    let logarithmic = is_wide(members.iter().map(|m| m.row));
    let about = if logarithmic {
        "The line is the median, each dot a run. The scale is logarithmic: a bar twice as long is not twice as much."
    } else {
        "The bar ends at the median, each dot is a run."
    };
    Chart { title, about, unit, logarithmic, shape: Shape::Bars(categories) }
}

fn category(name: String, role: Role, samples: Vec<f64>, median: f64, text: String) -> Category {
    let median = (!samples.is_empty()).then_some(median);
    Category { name, class: role.class(), samples, median, text }
}

fn words(row: &Row) -> String {
    let (low, high) = range(&row.samples);
    match row.samples.len() {
        0 => "no samples".into(),
        1 => words::with_unit(row.median, &row.unit),
        _ => format!("{} ({} to {})", words::with_unit(row.median, &row.unit), shown(low), shown(high)),
    }
}

fn many_words(row: &Row) -> String {
    let most = quantile(&row.samples, 1.0);
    most.map_or("no samples".into(), |most| {
        format!("median {}, max {}", shown(row.median), words::with_unit(most, &row.unit))
    })
}

/// True if the values are above zero and too far apart for a linear scale. Percentages are always on a linear scale, beside the whole.
fn is_wide<'a>(rows: impl Iterator<Item = &'a Row> + Clone) -> bool {
    if rows.clone().all(|r| r.unit == "%") {
        return false;
    }
    let (low, high) = rows.map(|r| range(&r.samples)).fold(range(&[]), |a, b| (a.0.min(b.0), a.1.max(b.1)));
    low > 0.0 && high / low > LOGARITHMIC_FROM
}

/// The effect of each variation: its samples minus the median of ours; and ours, to show the spread between runs.
fn differences(group: &Group<'_>) -> Chart {
    let is_shown = |m: &&Member<'_>| m.role == Role::Variation || is_ours(group, m);
    let one = |m: &Member<'_>| {
        let ours = group.ours(m.row).map_or(0.0, |r| r.median);
        let samples: Vec<f64> = m.row.samples.iter().map(|s| s - ours).collect();
        let difference = m.row.median - ours;
        let text = match (m.role, samples.len()) {
            (_, 0) => "no samples".into(),
            (Role::Ours, _) => format!("unchanged: {}", words::with_unit(ours, group.unit)),
            _ if ours == 0.0 => format!("{} {}", signed(difference), group.unit),
            _ => {
                let percent = signed((100.0 * difference / ours).round());
                format!("{} {} ({percent} %)", signed(difference), group.unit)
            }
        };
        category(m.label.clone(), m.role, samples, difference, text)
    };
    let categories = group.members.iter().filter(is_shown).map(one).collect();
    Chart {
        title: format!("{}: what each setting changes", title(group)),
        about: "eke with one thing changed, minus eke's median. The line is the median, each dot a run; the dots of eke itself show the spread between runs.",
        unit: group.unit.to_owned(),
        logarithmic: false,
        shape: Shape::Differences(categories),
    }
}

/// True for the row of ours that a variation is compared with.
fn is_ours(group: &Group<'_>, member: &Member<'_>) -> bool {
    let variations = group.members.iter().filter(|m| m.role == Role::Variation);
    member.role == Role::Ours
        && variations.into_iter().any(|m| group.ours(m.row).is_some_and(|r| std::ptr::eq(r, member.row)))
}

/// The values over the sweep; `None` with fewer than two places.
fn curve(group: &Group<'_>, members: &[&Member<'_>]) -> Option<Chart> {
    let mut lines: Vec<Line> = Vec::new();
    for member in members.iter().filter(|m| !m.row.samples.is_empty()) {
        let Some(at) = group.place(member.row) else { continue };
        let point = Point { at, samples: member.row.samples.clone(), median: member.row.median };
        match lines.iter_mut().find(|l| l.name == member.label) {
            Some(line) => line.points.push(point),
            None => {
                lines.push(Line {
                    name: member.label.clone(),
                    class: member.role.class(),
                    points: vec![point],
                });
            }
        }
    }
    let mut places: Vec<f64> = lines.iter().flat_map(|l| l.points.iter().map(|p| p.at)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let (name, unit) = words::key_words(&group.sweep.as_ref()?.key);
    let over = if unit.is_empty() { name } else { format!("{name}, {unit}") };
    (places.len() > 1).then(|| Chart {
        title: title(group),
        about: "The ring is the median, each dot a run.",
        unit: group.unit.to_owned(),
        logarithmic: is_wide(members.iter().map(|m| m.row)),
        shape: Shape::Curve(Curve { over, lines }),
    })
}

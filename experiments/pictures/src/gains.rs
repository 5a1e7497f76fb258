//! The gains of all remedies: a picture of how many times better each makes its metric, and the README's table.

use std::path::Path;

use anyhow::Result;
use eke_plot::chart::{Category, Chart, Shape};
use eke_results::report::{Role, words};

use crate::plot;
use crate::remedies::{ALL, Gain, Remedy};
use crate::theme::Theme;

/// The three medians of a remedy, in the metric's unit.
struct Medians {
    without: f64,
    peer: f64,
    ours: f64,
    unit: String,
}

/// The remedies with a gain, in the order of the table.
fn gains() -> impl Iterator<Item = (&'static Remedy, &'static Gain)> {
    ALL.iter().filter_map(|remedy| Some((remedy, remedy.gain.as_ref()?)))
}

fn medians(results: &Path, remedy: &Remedy, gain: &Gain) -> Result<Medians> {
    let variants = [gain.without, gain.peer.0, gain.ours];
    let rows = remedy.stored.report(results, &variants)?.rows;
    let median = |i: usize| rows.get(i).map_or(0.0, |row| row.median);
    let unit = rows.first().map(|row| row.unit.clone()).unwrap_or_default();
    Ok(Medians { without: median(0), peer: median(1), ours: median(2), unit })
}

/// How many times better than without a remedy.
fn times(gain: &Gain, without: f64, value: f64) -> f64 {
    if gain.less_is_better { without / value } else { value / without }
}

/// The picture: eke beside the best existing tool.
///
/// # Errors
/// A stored result cannot be read.
pub fn picture(results: &Path, theme: Theme) -> Result<String> {
    let mut categories = Vec::new();
    for (remedy, gain) in gains() {
        let m = medians(results, remedy, gain)?;
        let mut add = |name: String, role: Role, value| {
            let better = times(gain, m.without, value);
            let without = words::with_unit(m.without, &m.unit);
            let text = format!("{} instead of {without}: {better:.1} times", words::shown(value));
            categories.push(Category {
                name,
                class: role.class(),
                // A bar of a median alone: one dot on it would say nothing.
                samples: Vec::new(),
                median: Some(better),
                text,
            });
        };
        add(format!("{}: eke, {}", remedy.name, gain.measured), Role::Ours, m.ours);
        add(format!("{}: {}", remedy.name, gain.peer.1), Role::Peer, m.peer);
    }
    let chart = Chart {
        title: "How many times better than without a remedy".into(),
        about: "",
        unit: "times better".into(),
        logarithmic: false,
        shape: Shape::Bars(categories),
    };
    Ok(plot::file(&chart, theme))
}

/// The README's table.
///
/// # Errors
/// A stored result cannot be read.
pub fn table(results: &Path) -> Result<String> {
    let mut out = String::from(
        "| remedy | measured | without | best tool of today | eke |\n| --- | --- | --- | --- | --- |\n",
    );
    for (remedy, gain) in gains() {
        let m = medians(results, remedy, gain)?;
        let shown = |value| words::with_unit(value, &m.unit);
        let Remedy { name, stored, .. } = remedy;
        let Gain { measured, peer, .. } = gain;
        out += &format!(
            "| [{name}](docs/{name}.md) | [{measured}](docs/results/{}) | {} | {} ({}) | **{}** |\n",
            stored.file,
            shown(m.without),
            shown(m.peer),
            peer.1,
            shown(m.ours)
        );
    }
    Ok(out)
}

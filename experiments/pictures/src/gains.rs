//! The gains of all remedies: a picture of how many times better each makes its metric, and the README's table.

use std::path::Path;

use anyhow::Result;
use eke_plot::chart::{Category, Chart, Shape};
use eke_results::report::{Role, words};

use crate::plot;
use crate::remedies::{ALL, Remedy};
use crate::theme::Theme;

/// The three medians of a remedy, in the metric's unit.
struct Medians {
    without: f64,
    peer: f64,
    ours: f64,
    unit: String,
}

fn medians(results: &Path, remedy: &Remedy) -> Result<Medians> {
    let variants = [remedy.without, remedy.peer.0, remedy.ours];
    let rows = remedy.stored.report(results, &variants)?.rows;
    let median = |i: usize| rows.get(i).map_or(0.0, |row| row.median);
    let unit = rows.first().map(|row| row.unit.clone()).unwrap_or_default();
    Ok(Medians { without: median(0), peer: median(1), ours: median(2), unit })
}

/// How many times better than without a remedy.
fn times(remedy: &Remedy, without: f64, value: f64) -> f64 {
    if remedy.less_is_better { without / value } else { value / without }
}

/// The picture: eke beside the best existing tool, if that gains anything.
///
/// # Errors
/// A stored result cannot be read.
pub fn picture(results: &Path, theme: Theme) -> Result<String> {
    let mut categories = Vec::new();
    for remedy in &ALL {
        let m = medians(results, remedy)?;
        let mut add = |name: String, role: Role, value| {
            let gain = times(remedy, m.without, value);
            let without = words::with_unit(m.without, &m.unit);
            let text = format!("{} instead of {without}: {gain:.1} times", words::shown(value));
            categories.push(Category {
                name,
                class: role.class(),
                samples: vec![gain],
                median: Some(gain),
                text,
            });
        };
        if remedy.peer.0 != remedy.without {
            add(format!("{} with {}", remedy.name, remedy.peer.1), Role::Peer, m.peer);
        }
        add(format!("{} with eke: {}", remedy.name, remedy.measured), Role::Ours, m.ours);
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
    for remedy in &ALL {
        let m = medians(results, remedy)?;
        let shown = |value| words::with_unit(value, &m.unit);
        let Remedy { name, measured, peer, stored, .. } = remedy;
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

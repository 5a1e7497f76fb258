//! Histograms by powers of two: for each class the variants side by side with the same buckets.

use std::fmt::Write;

use eke_model::units::Nanos;
use eke_plot::chart::{cut, text};
use eke_plot::svg::{NARROW, Size, WIDE, escape};

use crate::report::groups::variants;
use crate::report::times::Times;
use crate::report::words::parameter;
use crate::report::{Report, Role, Variant};

/// Sizes in pixels: the labels of buckets, a panel, the gap between panels, a bucket, and a panel's name.
const LABELS: f64 = 58.0;
const PANEL: f64 = 140.0;
const GAP: f64 = 18.0;
const BUCKET: f64 = 15.0;
const NAME: f64 = 24.0;

/// A section for each class and condition.
pub fn add(out: &mut String, report: &Report) {
    let variants = variants(report);
    for (i, (title, panels)) in sections(report).iter().enumerate() {
        let _ = writeln!(out, "<section id=\"times-{}\"><h2>{}</h2>", i + 1, escape(title));
        let id = format!("t{}-", i + 1);
        let _ = writeln!(
            out,
            "<figure>{}{}<figcaption>Each bar counts the times from its label to twice that. Bars are relative to the longest in their panel.</figcaption></figure></section>",
            draw(title, panels, &variants, WIDE, &id),
            draw(title, panels, &variants, NARROW, &id)
        );
    }
}

/// The comparable histograms with their titles.
fn sections(report: &Report) -> Vec<(String, Vec<&Times>)> {
    let mut sections: Vec<(String, Vec<&Times>)> = Vec::new();
    for times in &report.times {
        let conditions: Vec<String> = times.params.iter().map(|(key, v)| parameter(key, v)).collect();
        let title = format!("Latency: {}, {}", times.what, conditions.join(", "));
        let title = title.trim_end_matches(", ").to_owned();
        match sections.iter_mut().find(|(known, _)| *known == title) {
            Some((_, panels)) => panels.push(times),
            None => sections.push((title, vec![times])),
        }
    }
    sections
}

/// All buckets from the first non-empty one to the last.
fn buckets(panels: &[&Times]) -> Vec<u64> {
    let all = || panels.iter().flat_map(|times| times.buckets.iter().filter(|b| b.1 > 0).map(|b| b.0));
    let (Some(first), Some(last)) = (all().min(), all().max()) else { return Vec::new() };
    std::iter::successors(Some(first.max(1)), |from| from.checked_mul(2))
        .take_while(|from| *from <= last)
        .collect()
}

fn draw(title: &str, panels: &[&Times], variants: &[Variant], size: Size, id: &str) -> String {
    let buckets = buckets(panels);
    let columns = (((size.width - LABELS + GAP) / (PANEL + GAP)) as usize).max(1);
    let height = NAME + buckets.len() as f64 * BUCKET + GAP;
    let mut inside = String::new();
    for (i, times) in panels.iter().enumerate() {
        let at = (LABELS + (i % columns) as f64 * (PANEL + GAP), (i / columns) as f64 * height);
        if i % columns == 0 {
            labels(&mut inside, &buckets, at.1);
        }
        let role = variants.iter().find(|v| v.name == times.variant).map_or(Role::Baseline, |v| v.role);
        panel(&mut inside, times, &buckets, role, at);
    }
    let (class, width, whole) = (size.class, size.width, panels.len().div_ceil(columns) as f64 * height);
    format!(
        "<svg class=\"{class}\" viewBox=\"0 0 {width} {whole:.0}\" role=\"img\" aria-labelledby=\"{id}{class}t\"><title id=\"{id}{class}t\">{}</title>{inside}</svg>",
        escape(title)
    )
}

fn labels(out: &mut String, buckets: &[u64], top: f64) {
    for (i, from_ns) in buckets.iter().enumerate() {
        let y = top + NAME + (i as f64 + 0.8) * BUCKET;
        text(out, (LABELS - 6.0, y), "end", "", &Nanos(*from_ns).to_string());
    }
}

fn panel(out: &mut String, times: &Times, buckets: &[u64], role: Role, (left, top): (f64, f64)) {
    let (role, name) = (role.class(), escape(&times.variant));
    text(out, (left, top + 14.0), "start", &format!("name {role}"), &cut(&times.variant, PANEL));
    let whole: u64 = times.buckets.iter().map(|(_, count)| count).sum();
    let most = times.buckets.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    let bottom = top + NAME + buckets.len() as f64 * BUCKET;
    let _ = write!(out, "<path class=\"axis\" d=\"M{left:.1} {:.1}V{bottom:.1}\"/>", top + NAME);
    for (i, from_ns) in buckets.iter().enumerate() {
        let count = times.count(*from_ns);
        if count == 0 {
            continue;
        }
        // a non-zero count is visible
        let long = (count as f64 / most as f64 * PANEL).max(1.0);
        let _ = write!(
            out,
            "<rect class=\"bar {role}\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{long:.1}\" height=\"{:.1}\" data-variant=\"{name}\" data-from=\"{from_ns}\" data-count=\"{count}\"><title>{name}, from {}: {count} of {whole}</title></rect>",
            top + NAME + i as f64 * BUCKET + 1.0,
            BUCKET - 3.0,
            Nanos(*from_ns)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(variant: &str, what: &str, buckets: &[(u64, u64)]) -> Times {
        let params = [("writer".to_owned(), "a stream".into())].into();
        Times { variant: variant.into(), params, what: what.into(), buckets: buckets.to_vec() }
    }

    fn page(times: Vec<Times>) -> String {
        let mut out = String::new();
        add(&mut out, &Report { times, ..Report::default() });
        out
    }

    #[test]
    fn classes_have_a_section_each_and_variants_the_same_buckets() {
        let page = page(vec![
            times("kernel default", "sync read", &[(1024, 5), (2048, 0), (4096, 10)]),
            times("eke", "sync read", &[(1 << 20, 3)]),
            times("eke", "async write", &[(4096, 1)]),
        ]);
        assert_eq!(page.matches("<section").count(), 2);
        assert_eq!(page.matches("Latency: sync read, writer a stream</h2>").count(), 1, "{page}");
        let reads = page.split("</section>").next().unwrap();
        // both widths; empty buckets have no bar
        assert_eq!(reads.matches("<rect").count(), 2 * 3);
        assert!(reads.contains("<title>kernel default, from 1.02 µs: 5 of 15</title>"), "{reads}");
        let [narrow, wide] = [70.0, 140.0].map(|w| reads.matches(&format!("width=\"{w:.1}\"")).count());
        assert_eq!((narrow, wide), (2, 4), "half as many are half as long");
    }

    #[test]
    fn nothing_and_names_are_no_markup() {
        assert_eq!(page(Vec::new()), "");
        let page = page(vec![times("<b>", "x", &[(u64::MAX / 2 + 1, 1)]), times("c", "<i>", &[])]);
        assert!(!page.contains("<b>") && !page.contains("<i>"), "{page}");
    }
}

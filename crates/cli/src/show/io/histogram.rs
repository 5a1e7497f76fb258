//! Histograms as text, in the form of the original study.

use std::fmt::Write as _;

use eke_io::Histogram;
use eke_model::units::Nanos;

const WIDTH: usize = 40;

/// One histogram: for each bucket from the first to the last non-empty one its lower bound, a bar and its count.
pub fn one(histogram: &Histogram) -> String {
    let mut out = format!("  {:>10}  {:-^WIDTH$} count\n", "from", " distribution ");
    let most = histogram.buckets.iter().copied().max().unwrap_or(0);
    for (from_ns, count) in histogram.rows() {
        let _ = writeln!(
            out,
            "  {:>10} |{:<WIDTH$} {count}",
            Nanos(from_ns).to_string(),
            bar(count, most, WIDTH)
        );
    }
    out
}

/// Two histograms side by side with the same buckets. Each bar is relative to the longest of its own histogram.
pub fn two(names: [&str; 2], histograms: [&Histogram; 2]) -> String {
    const HALF: usize = 24;
    let mut out = format!(
        "  {:>10}  {:<HALF$} {:>7}   {:<HALF$} {:>7}\n",
        "from", names[0], "count", names[1], "count"
    );
    let most = histograms.map(|h| h.buckets.iter().copied().max().unwrap_or(0));
    let mut both = *histograms[0];
    both.merge(histograms[1]);
    for (from_ns, _) in both.rows() {
        let at = eke_io::histogram::bucket_of(from_ns);
        let cell = |i: usize| (bar(histograms[i].buckets[at], most[i], HALF), histograms[i].buckets[at]);
        let ((left, a), (right, b)) = (cell(0), cell(1));
        let _ = writeln!(
            out,
            "  {:>10} |{left:<HALF$} {a:>7}  |{right:<HALF$} {b:>7}",
            Nanos(from_ns).to_string()
        );
    }
    out
}

/// A non-zero count has at least one character.
fn bar(count: u64, most: u64, width: usize) -> String {
    let length = (count as f64 / most.max(1) as f64 * width as f64).round() as usize;
    "@".repeat(if count > 0 { length.max(1) } else { 0 })
}

/// A time with three significant digits, or a dash.
pub fn time(ns: Option<f64>) -> String {
    ns.map_or_else(|| "-".to_owned(), |ns| Nanos(ns as u64).to_string())
}

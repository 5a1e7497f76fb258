//! A recording as plots: first the four of the thin-client study over its loading steps, then the rest. Pure.

use crate::load::Recording;
use crate::row::Row;
use eke_plot::axis::Unit;
use eke_plot::lines::{self, LinePlot, Mark, Series};

type Column = fn(&Row) -> Option<u64>;

/// CPU times come in ticks of 10 ms: over less than this, their rate is mostly noise.
const CPU_WINDOW_MS: u64 = 500;

/// The plots that the recording has data for.
pub fn plots(recording: &Recording) -> Vec<LinePlot> {
    let rows = &recording.rows;
    let all = [memory(rows), swap(rows), cache(rows), traffic(rows), waiting(rows), cpu(rows), tree(rows)];
    let mut all: Vec<LinePlot> = all.into();
    for plot in &mut all {
        plot.series.retain(|s| s.points.iter().any(|(_, value)| value.is_some()));
    }
    all.retain(|f| !f.series.is_empty());
    all
}

/// The ends of the recording in seconds.
pub fn span(recording: &Recording) -> (f64, f64) {
    let (from, to) = recording.span_ms();
    (from as f64 / 1e3, to as f64 / 1e3)
}

/// The recording's named steps.
pub fn marks(recording: &Recording) -> Vec<Mark> {
    let mark = |m: &crate::row::Mark| Mark { time_s: m.time_ms as f64 / 1e3, name: m.name.clone() };
    recording.marks.iter().map(mark).collect()
}

/// Each plot as a file of its own: its name, its SVG.
pub fn files(recording: &Recording) -> Vec<(String, String)> {
    let (marks, span) = (marks(recording), span(recording));
    let file = |(i, plot): (usize, LinePlot)| {
        (format!("{}-{}.svg", i + 1, plot.id), lines::file(&plot, &marks, span))
    };
    plots(recording).into_iter().enumerate().map(file).collect()
}

fn memory(rows: &[Row]) -> LinePlot {
    LinePlot {
        id: "free-memory",
        title: "Free memory",
        note: "Available is the kernel's estimate of what programs can still get without swapping.",
        unit: Unit::Bytes,
        series: vec![gauge(rows, "available", |r| r.available_bytes), gauge(rows, "free", |r| r.free_bytes)],
    }
}

fn swap(rows: &[Row]) -> LinePlot {
    LinePlot {
        id: "swap",
        title: "Swapped and compressed",
        note: "\"swapped\" and \"held compressed\" are sizes before compression; \"pool\" is the RAM of the compressed pages.",
        unit: Unit::Bytes,
        series: vec![
            gauge(rows, "swapped", |r| r.swapped_bytes),
            gauge(rows, "held compressed", |r| r.held_bytes),
            gauge(rows, "pool", |r| r.pool_bytes),
        ],
    }
}

fn cache(rows: &[Row]) -> LinePlot {
    LinePlot {
        id: "page-cache",
        title: "Page cache and anonymous pages",
        note: "Both are in RAM. When the page cache is almost empty, programs are read from the disk again and again.",
        unit: Unit::Bytes,
        series: vec![
            gauge(rows, "page cache", |r| r.file_cache_bytes),
            gauge(rows, "anonymous", |r| r.anonymous_bytes),
        ],
    }
}

fn traffic(rows: &[Row]) -> LinePlot {
    LinePlot {
        id: "traffic",
        title: "Pages in and out, major faults",
        note: "Pages to and from swap, compressed or not. A major fault waits for a page.",
        unit: Unit::PerSecond,
        series: vec![
            rate(rows, "pages in", 1e3, |r| r.pages_in),
            rate(rows, "pages out", 1e3, |r| r.pages_out),
            rate(rows, "major faults", 1e3, |r| r.major_faults),
        ],
    }
}

/// Microseconds in a millisecond are 0.1 percent.
fn waiting(rows: &[Row]) -> LinePlot {
    LinePlot {
        id: "waiting",
        title: "Waiting for memory and I/O",
        note: "Pressure-stall information: the share of the time in which some task, or all of them, waited.",
        unit: Unit::Percent,
        series: vec![
            rate(rows, "memory, some", 0.1, |r| r.memory_some_us),
            rate(rows, "memory, all", 0.1, |r| r.memory_full_us),
            rate(rows, "I/O, some", 0.1, |r| r.io_some_us),
        ],
    }
}

fn cpu(rows: &[Row]) -> LinePlot {
    let machine = ratio(rows, "machine", |r| r.cpu_busy_ms);
    let tree = ratio(rows, "recorded processes", |r| r.tree_cpu_ms);
    LinePlot {
        id: "cpu",
        title: "CPU",
        note: "A share of all CPUs together, over half a second each.",
        unit: Unit::Percent,
        series: vec![machine, tree],
    }
}

fn tree(rows: &[Row]) -> LinePlot {
    LinePlot {
        id: "processes",
        title: "Resident pages of the recorded processes",
        note: "The sum over the command and its children; a page that two processes share counts twice.",
        unit: Unit::Bytes,
        series: vec![gauge(rows, "resident", |r| r.tree_rss_bytes)],
    }
}

fn seconds(row: &Row) -> f64 {
    row.time_ms as f64 / 1e3
}

fn gauge(rows: &[Row], label: &'static str, of: Column) -> Series {
    let points = rows.iter().map(|r| (seconds(r), of(r).map(|n| n as f64))).collect();
    Series { label, points }
}

/// A counter's growth since the sample before per millisecond, times `factor`.
fn rate(rows: &[Row], label: &'static str, factor: f64, of: Column) -> Series {
    let points = rows.windows(2).filter_map(|pair| {
        let [before, now] = pair else { return None };
        let ms = now.time_ms.checked_sub(before.time_ms).filter(|ms| *ms > 0)?;
        let grown = grown(before, now, of).map(|n| n as f64 * factor / ms as f64);
        Some((seconds(now), grown))
    });
    Series { label, points: points.collect() }
}

/// A counter's growth in percent of all CPUs' time, over a window.
fn ratio(rows: &[Row], label: &'static str, of: Column) -> Series {
    let points = rows.iter().enumerate().skip(1).filter_map(|(i, now)| {
        let before_window = now.time_ms.saturating_sub(CPU_WINDOW_MS);
        let before = rows[..i].partition_point(|r| r.time_ms <= before_window).saturating_sub(1);
        let before = rows.get(before)?;
        let total = grown(before, now, |r| r.cpu_total_ms).filter(|ms| *ms > 0);
        let share = total.and_then(|total| Some(100.0 * grown(before, now, of)? as f64 / total as f64));
        Some((seconds(now), share.map(|s| s.min(100.0))))
    });
    Series { label, points: points.collect() }
}

/// The first rows of a command have no process yet: their values are 0.
fn grown(before: &Row, now: &Row, of: Column) -> Option<u64> {
    Some(of(now)?.saturating_sub(of(before).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(time_ms: u64, pages_in: u64) -> Row {
        Row { time_ms, pages_in: Some(pages_in), free_bytes: Some(5), ..Row::default() }
    }

    #[test]
    fn rates_are_per_second_of_the_real_interval() {
        let rows = [row(0, 0), row(100, 50), row(100, 60), row(350, 110), row(450, 90)];
        let series = rate(&rows, "x", 1e3, |r| r.pages_in);
        assert_eq!(series.points, [(0.1, Some(500.0)), (0.35, Some(200.0)), (0.45, Some(0.0))]);
        let waited = [
            Row { time_ms: 0, memory_some_us: Some(0), ..Row::default() },
            Row { time_ms: 100, memory_some_us: Some(50_000), ..Row::default() },
        ];
        assert_eq!(rate(&waited, "x", 0.1, |r| r.memory_some_us).points, [(0.1, Some(50.0))]);
    }

    #[test]
    fn cpu_is_a_share_over_a_window() {
        let rows: Vec<Row> = (0..10)
            .map(|i| Row {
                time_ms: i * 100,
                cpu_total_ms: Some(i * 200),
                cpu_busy_ms: Some(if i >= 5 { 100 } else { 0 }),
                ..Row::default()
            })
            .collect();
        let points = ratio(&rows, "x", |r| r.cpu_busy_ms).points;
        assert_eq!((points[3].1, points[4].1, points[8].1), (Some(0.0), Some(10.0), Some(10.0)));
    }

    #[test]
    fn plots_without_data_are_left_out() {
        let recording = Recording { rows: vec![row(0, 0), row(100, 5)], ..Recording::default() };
        let found = plots(&recording);
        assert_eq!(found.iter().map(|f| f.id).collect::<Vec<_>>(), ["free-memory", "traffic"]);
        assert_eq!(found[0].series.len(), 1);
        assert!(plots(&Recording::default()).is_empty());
    }
}

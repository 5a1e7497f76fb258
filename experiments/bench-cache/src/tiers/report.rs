//! The report of a grid. Pure.

use eke_bench_core::Environment;
use eke_cache_replay::tiers::{Outcome, Way};
use eke_results::report::{DataTable, Metric, Report, Role, Variant, less, more};
use eke_results::rows::{Params, Rows};
use serde_json::Value;

use super::Modelled;
use super::grid::{AXES, CONTENTS, MEMORY, WORKING_SETS};

/// eke loses a cell if it has less than this share of ext4's throughput.
pub const LEAST: f64 = 0.97;
/// The same for the 99th percentile of response times.
pub const MOST_P99: f64 = 1.05;
/// Where content compresses at least so well and does not fit, eke should have this share of the best way's gain.
const GOAL_CONTENT: f64 = 1.9;
const GOAL_GAIN: f64 = 0.85;
/// Ways within this are equally good; the first is named.
const EQUAL: f64 = 1.01;
/// The worst cells in the table.
pub const WORST: usize = 10;

const MEAN: &str = "throughput beside ext4";
const SLOWER: &str = "slower cells";
const P99: &str = "99th percentile beside ext4";
const READ: &str = "disk bytes beside ext4";
const BOUND: &str = "bound";

/// The heads of the ways' columns.
const SHORT: [&str; 8] = ["ext4", "in25", "in80", "late", "res", "excl", "dio", "eke"];

impl Modelled {
    /// A way's outcome.
    pub fn of(&self, way: Way) -> &Outcome {
        let index = Way::ALL.iter().position(|w| *w == way).unwrap_or(0);
        &self.ways[index]
    }

    fn ext4(&self) -> &Outcome {
        self.of(Way::PageCache)
    }

    /// An outcome's throughput, in multiples of ext4's.
    pub fn gain(&self, outcome: &Outcome) -> f64 {
        outcome.throughput / self.ext4().throughput
    }

    /// An outcome's 99th percentile, in multiples of ext4's.
    pub fn p99(&self, outcome: &Outcome) -> Option<f64> {
        Some(outcome.p99_s? / self.ext4().p99_s.filter(|s| *s > 0.0)?)
    }

    /// The gain of eke's default.
    pub fn eke(&self) -> f64 {
        self.gain(self.of(Way::Eke))
    }

    /// The same from empty caches.
    pub fn eke_cold(&self) -> f64 {
        let [ext4, eke] = self.cold;
        eke.throughput / ext4.throughput
    }

    /// The way with the highest throughput, and its gain.
    pub fn best(&self) -> (Way, f64) {
        let all = || Way::ALL.into_iter().map(|way| (way, self.gain(self.of(way))));
        let most = all().map(|(_, gain)| gain).fold(0.0, f64::max);
        all().find(|(_, gain)| gain * EQUAL >= most).unwrap_or((Way::PageCache, 1.0))
    }

    /// eke's share of the best way's gain, where the goal is set and that way gains something.
    fn share_of_gain(&self) -> Option<f64> {
        let (_, best) = self.best();
        let is_meant =
            CONTENTS[self.cell.content] >= GOAL_CONTENT && WORKING_SETS[self.cell.working_set] > 1.0;
        (is_meant && best > EQUAL).then(|| (self.eke() - 1.0) / (best - 1.0))
    }
}

/// The cells in which eke has the least throughput beside ext4, worst first.
pub fn worst(all: &[Modelled]) -> Vec<&Modelled> {
    let mut worst: Vec<&Modelled> = all.iter().collect();
    worst.sort_by(|a, b| a.eke().total_cmp(&b.eke()));
    worst.truncate(WORST);
    worst
}

/// The report.
pub fn report(environment: &Environment<'_>, all: &[Modelled]) -> Report {
    Report {
        variants: variants(),
        metrics: metrics(),
        rows: rows(all).done(),
        tables: tables(all),
        notes: [about_the_result(all), about_the_model()].concat(),
        ..environment.report("tiers")
    }
}

fn variants() -> Vec<Variant> {
    let of = |way: Way| {
        let role = match way {
            Way::PageCache => Role::Baseline,
            Way::Eke => Role::Ours,
            _ => Role::Variation,
        };
        Variant { name: way.name(), role, set_up: way.about().into() }
    };
    let bound = "Belady's rule with sizes, relaxed so that no way can beat it; all memory is a compressed store whose hits cost as little as the page cache's";
    let bound = Variant { name: BOUND.into(), role: Role::Baseline, set_up: bound.into() };
    Way::ALL.map(of).into_iter().chain([bound]).collect()
}

fn metrics() -> Vec<Metric> {
    let by = |axis: &str, name: &str| format!("{name}, by {axis}");
    let of = |(axis, _): (&str, usize)| {
        [
            more(&by(axis, MEAN), "geometric mean over all cells with this value"),
            less(&by(axis, SLOWER), "share of these cells with less than 0.97 of ext4's throughput"),
            less(&by(axis, P99), "99th percentile of response times, geometric mean"),
            less(&by(axis, READ), "bytes from the disk, geometric mean over cells where ext4 reads any"),
        ]
    };
    AXES.into_iter().flat_map(of).collect()
}

/// Means over all cells with a value of an axis.
fn rows(all: &[Modelled]) -> Rows {
    let mut rows = Rows::default();
    for (axis, (name, count)) in AXES.into_iter().enumerate() {
        for value in 0..count {
            let cells: Vec<&Modelled> = all.iter().filter(|m| m.cell.at()[axis] == value).collect();
            let Some(first) = cells.first() else { continue };
            let shown = &first.cell.names()[axis];
            let shown = shown.parse::<f64>().map_or_else(|_| Value::from(shown.as_str()), Value::from);
            let at = Params::from([(name.replace(' ', "_"), shown)]);
            add_means(&mut rows, &cells, name, &at);
        }
    }
    rows
}

fn add_means(rows: &mut Rows, cells: &[&Modelled], axis: &str, at: &Params) {
    let outcomes = |index: usize| cells.iter().map(move |m| (*m, m.ways.get(index).unwrap_or(&m.bound)));
    for index in 0..=Way::ALL.len() {
        let name = Way::ALL.get(index).map_or(BOUND.to_owned(), |way| way.name());
        let mut add = |metric: &str, unit: &str, value: Option<f64>| {
            rows.add(&name, at, &format!("{metric}, by {axis}"), unit, value);
        };
        add(MEAN, "x", mean(outcomes(index).map(|(m, outcome)| m.gain(outcome))));
        let slower = outcomes(index).filter(|(m, outcome)| m.gain(outcome) < LEAST).count();
        add(SLOWER, "%", Some(100.0 * slower as f64 / cells.len().max(1) as f64));
        add(P99, "x", mean(outcomes(index).filter_map(|(m, outcome)| m.p99(outcome))));
        let read = outcomes(index).filter(|(m, outcome)| m.ext4().from_disk.min(outcome.from_disk) > 0.0);
        add(READ, "x", mean(read.map(|(m, outcome)| outcome.from_disk / m.ext4().from_disk)));
    }
}

/// The geometric mean.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value.ln(), count + 1.0));
    (count > 0.0).then(|| f64::exp(sum / count))
}

fn tables(all: &[Modelled]) -> Vec<DataTable> {
    vec![
        worst_cells(all),
        best_ways(all),
        by_cell(all, "Throughput beside ext4, and the best way", |m, o| Some(m.gain(o)), false),
        by_cell(all, "Requests with a read from the disk, in percent", |_, o| Some(100.0 * o.misses), true),
        by_cell(
            all,
            "Bytes from the disk, in percent of those requested",
            |_, o| Some(100.0 * o.from_disk),
            true,
        ),
        by_cell(all, "Throughput in MB/s", |_, o| Some(o.throughput / 1e6), true),
        by_cell(all, "99th percentile of response times, in ms", |_, o| o.p99_s.map(|s| s * 1e3), true),
    ]
}

fn columns(more: &[&str]) -> Vec<String> {
    AXES.iter().map(|(name, _)| *name).chain(more.iter().copied()).map(str::to_owned).collect()
}

fn worst_cells(all: &[Modelled]) -> DataTable {
    let line = |m: &&Modelled| {
        let eke = m.of(Way::Eke);
        let (best, gain) = m.best();
        let p99 = m.p99(eke).map_or("-".into(), number);
        let read = [m.ext4(), eke].map(|o| number(100.0 * o.from_disk));
        let [ext4_read, eke_read] = read;
        let last =
            [number(m.eke()), number(m.eke_cold()), p99, ext4_read, eke_read, number(gain), best.name()];
        m.cell.names().into_iter().chain(last).collect::<Vec<_>>().join("\t")
    };
    DataTable {
        title: "The cells in which eke has the least throughput beside ext4; also from empty caches, its 99th percentile beside ext4's, bytes from the disk in percent, and the best way".into(),
        columns: columns(&["eke", "cold", "p99", "ext4 read", "eke read", "best", "way"]),
        lines: worst(all).iter().map(line).collect(),
        is_long: false,
    }
}

fn best_ways(all: &[Modelled]) -> DataTable {
    let disks = AXES[4].1;
    let line = |way: Way| {
        let count = |disk: usize| all.iter().filter(|m| m.cell.disk == disk && m.best().0 == way).count();
        let counts = (0..disks).map(|disk| count(disk).to_string());
        std::iter::once(way.name()).chain(counts).collect::<Vec<_>>().join("\t")
    };
    let heads = ["way", "2008", "sd", "nfs 1g", "memory"];
    DataTable {
        title: "In how many cells each way is the best, by disk; of ways within 1 % the first counts".into(),
        columns: heads.map(str::to_owned).to_vec(),
        lines: Way::ALL.map(line).to_vec(),
        is_long: false,
    }
}

fn by_cell(
    all: &[Modelled],
    title: &str,
    value: impl Fn(&Modelled, &Outcome) -> Option<f64>,
    is_long: bool,
) -> DataTable {
    let line = |m: &Modelled| {
        let values = m.ways.iter().chain([&m.bound]).map(|o| value(m, o).map_or("-".to_owned(), number));
        let best = (!is_long).then(|| SHORT[Way::ALL.iter().position(|w| *w == m.best().0).unwrap_or(0)]);
        let all = m.cell.names().into_iter().chain(values).chain(best.map(str::to_owned));
        all.collect::<Vec<_>>().join("\t")
    };
    let last: &[&str] = if is_long { &[BOUND] } else { &[BOUND, "best"] };
    DataTable {
        title: title.into(),
        columns: columns(&[&SHORT[..], last].concat()),
        lines: all.iter().map(line).collect(),
        is_long,
    }
}

/// Three digits, or all before the point.
fn number(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

fn about_the_result(all: &[Modelled]) -> Vec<String> {
    let count = |is: &dyn Fn(&&Modelled) -> bool| all.iter().filter(|m| is(m)).count();
    let slower = |way: Way| count(&|m| m.gain(m.of(way)) < LEAST);
    let late = count(&|m| m.p99(m.of(Way::Eke)).is_some_and(|p99| p99 > MOST_P99));
    let cold = count(&|m| m.eke_cold() < LEAST);
    let shares: Vec<f64> = all.iter().filter_map(Modelled::share_of_gain).collect();
    let missed = shares.iter().filter(|share| **share < GOAL_GAIN).count();
    let ways: Vec<String> =
        Way::ALL[1..7].iter().map(|way| format!("{} {}", way.name(), slower(*way))).collect();
    vec![
        format!(
            "eke has less than {LEAST} of ext4's throughput in {} of {} cells, and more than {MOST_P99} times its 99th percentile in {late}; from empty caches it has less in {cold}. Other ways are slower than {LEAST} in: {}.",
            slower(Way::Eke),
            all.len(),
            ways.join(", ")
        ),
        format!(
            "Where content compresses at least {GOAL_CONTENT} to 1, does not fit, and a way gains: eke has less than {GOAL_GAIN} of the best way's gain in {missed} of {} cells.",
            shares.len()
        ),
    ]
}

fn about_the_model() -> Vec<String> {
    [
        format!("A model, not a measurement: the same seed has the same result on any machine. Two processors, 32 clients, {MEMORY} for both tiers. Whole files are read. Before the measured requests every file is read twice, and as many requests fill the caches."),
        "A cell has at most 3,000 files and 15,000 measured requests. Of more files, one stands for its neighbours in popularity, and the memory is divided by their number (SHARDS).".into(),
        "Requests: 5 for each file, 3,000 to 15,000. scan: Zipf 0.8, and every fifth request is for a file that comes once. mixed: of 50 files 15 have 4 KiB, 15 64 KiB, 15 1 MiB, 4 16 MiB and one 100 MB. Working set: bytes of all files but the scan's, in multiples of the memory.".into(),
        "The disk: a read has at most 512 KiB, and costs 6.6 ms (2008), 0.4 ms (sd) or 0.5 ms that overlap (nfs 1g), and its bytes at 44, 40, 125 or 8,000 MB/s. Waiting requests share it equally.".into(),
        "Processors: 50 µs a request; for 64 KiB 28 from page cache to client, 12 more from the disk and 10 a read; through a mount 100 an open, 40 a FUSE request, 18 decompression and 90 compression.".into(),
        "The page cache has the kernel's two lists; the store eke's S3-FIFO, for exclusive and resident first LRU. The model knows no wasted read-ahead, no parts of files, no writes, no memory of programs, no zstd.".into(),
    ]
    .to_vec()
}

//! The report of a grid: each cell's ratios on the mount and in the model. Pure.

use std::collections::BTreeMap;

use eke_bench_cache::tiers::grid::{AXES, Cell};
use eke_bench_cache::tiers::report::{LEAST, MOST_P99};
use eke_bench_core::Environment;
use eke_cache_replay::tiers::Way;
use eke_results::report::{DataTable, Report, Role, Row, Variant as Compared, less, more};

use super::conditions::model;
use super::saved::{CELL, cell, finished, number};
use super::{VARIANTS, WebGrid};
use crate::metrics::{Measurement, P99, READ, THROUGHPUT};
use crate::plan::Variant;

/// Whether the caches were full before the window, 0 or 100.
const FILLED: &str = "runs with full caches";
/// The metrics of a cell.
const KEPT: [&str; 3] = [THROUGHPUT, P99, READ];

/// The measurements of a cell.
#[derive(Debug, Clone)]
pub struct Samples {
    cell: Cell,
    /// By variant and metric, with the unit.
    of: BTreeMap<(Variant, &'static str), (&'static str, Vec<f64>)>,
}

impl Samples {
    /// None yet.
    pub fn new(cell: &Cell) -> Self {
        Self { cell: *cell, of: BTreeMap::new() }
    }

    /// Adds a run.
    pub fn add(&mut self, variant: Variant, measured: &[Measurement], filled: bool) {
        let kept = measured.iter().filter(|(name, ..)| KEPT.contains(name)).copied();
        for (name, unit, value) in kept.chain([(FILLED, "%", 100.0 * f64::from(u8::from(filled)))]) {
            self.of.entry((variant, name)).or_insert((unit, Vec::new())).1.push(value);
        }
    }

    /// As rows.
    pub fn rows(self) -> Vec<Row> {
        let at = BTreeMap::from([(CELL.to_owned(), number(&self.cell).into())]);
        let row = |((variant, metric), (unit, samples)): ((Variant, &str), (&str, Vec<f64>))| {
            Row::new(variant.name(), &at, metric, unit, samples)
        };
        self.of.into_iter().map(row).collect()
    }
}

/// A finished cell: eke beside ext4 on the mount and in the model.
#[derive(Debug, Clone, PartialEq)]
struct Beside {
    cell: Cell,
    throughput: f64,
    p99: Option<f64>,
    /// Whether all runs of eke and of ext4 lie apart.
    is_clear: bool,
    is_filled: bool,
    modelled: f64,
    modelled_p99: Option<f64>,
    best: (Way, f64),
    /// What the model makes of ext4's throughput and 99th percentile on the mount.
    predicted: [Option<f64>; 2],
}

impl Beside {
    fn of(cell: Cell, rows: &[Row]) -> Option<Self> {
        let row = |variant: Variant, metric: &str| {
            let is = |r: &&Row| {
                r.variant == variant.name() && r.metric == metric && super::saved::cell(r) == Some(cell)
            };
            rows.iter().find(is)
        };
        let [ext4, eke] = VARIANTS;
        let peer = |metric: &str| row(ext4, metric).map(|r| r.median).filter(|median| *median > 0.0);
        let ratio = |metric: &str| Some(row(eke, metric)?.median / peer(metric)?);
        let range = |variant| row(variant, THROUGHPUT).map(|r| eke_statistics::range(&r.samples));
        let ((low, high), (eke_low, eke_high)) = (range(ext4)?, range(eke)?);
        let model = model(&cell);
        let modelled = model.of(Way::Eke);
        let (gain, modelled_p99) = (model.gain(modelled), model.p99(modelled));
        let filled = |variant| row(variant, FILLED).is_some_and(|r| r.samples.iter().all(|full| *full > 0.0));
        Some(Self {
            cell,
            throughput: ratio(THROUGHPUT)?,
            p99: ratio(P99),
            is_clear: eke_low > high || eke_high < low,
            is_filled: VARIANTS.into_iter().all(filled),
            modelled: gain,
            modelled_p99,
            best: model.best(),
            predicted: [
                peer(THROUGHPUT).map(|mb| mb * gain),
                peer(P99).zip(modelled_p99).map(|(ms, times)| ms * times),
            ],
        })
    }

    /// The prediction of eke's row of this metric.
    fn predicted(&self, metric: &str) -> Option<f64> {
        let nth = [THROUGHPUT, P99].iter().position(|predicted| *predicted == metric)?;
        self.predicted[nth]
    }

    fn loses(&self) -> bool {
        self.throughput < LEAST || self.p99.is_some_and(|p99| p99 > MOST_P99)
    }

    fn line(&self) -> String {
        let shown = |value: Option<f64>| value.map_or("-".to_owned(), |v| format!("{v:.2}"));
        let (way, gain) = self.best;
        let word = if self.throughput < LEAST {
            "slower"
        } else if self.loses() {
            "p99"
        } else {
            ""
        };
        let doubt = match (self.is_clear, self.is_filled) {
            (true, true) => "",
            (false, true) => "within the spread",
            (true, false) => "caches not full",
            (false, false) => "within the spread, caches not full",
        };
        let mine = [
            shown(Some(self.throughput)),
            shown(self.p99),
            shown(Some(self.modelled)),
            shown(self.modelled_p99),
            shown(Some(gain)),
            way.name(),
            word.into(),
            doubt.into(),
        ];
        self.cell.names().into_iter().chain(mine).collect::<Vec<_>>().join("\t")
    }
}

/// The report of all finished cells.
pub fn report(
    environment: &Environment<'_>,
    options: &WebGrid,
    rows: &[Row],
    more_notes: &[String],
) -> Report {
    let mut all: Vec<Beside> = finished(rows).into_iter().filter_map(|cell| Beside::of(cell, rows)).collect();
    // Those in which eke loses come first, the worst of them first.
    all.sort_by(|a, b| b.loses().cmp(&a.loses()).then(a.throughput.total_cmp(&b.throughput)));
    Report {
        variants: variants(),
        metrics: vec![
            more(
                THROUGHPUT,
                "bytes of replies that clients received in the window, by the number of the cell",
            ),
            less(P99, "from the request to the last byte"),
            less(READ, "bytes of read requests at the disk"),
            more(FILLED, "runs whose caches were full before the window"),
        ],
        rows: rows.iter().filter_map(|row| with_prediction(row, &all)).collect(),
        tables: vec![table(&all)],
        notes: [notes(options, &all), more_notes.to_vec()].concat(),
        ..environment.report("web")
    }
    .settled()
}

/// The row with what the model predicted; `None` if it is of no cell.
fn with_prediction(row: &Row, all: &[Beside]) -> Option<Row> {
    let of = cell(row)?;
    let beside = all.iter().find(|b| b.cell == of).filter(|_| row.variant == VARIANTS[1].name());
    Some(Row { predicted: beside.and_then(|b| b.predicted(&row.metric)), ..row.clone() })
}

fn variants() -> Vec<Compared> {
    let of = |(variant, role, set_up): (Variant, Role, &str)| Compared {
        name: variant.name().into(),
        role,
        set_up: set_up.into(),
    };
    vec![
        of((Variant::Ext4, Role::Peer, "ext4 on the disk, and the box's memory")),
        of((Variant::EkeExt4, Role::Ours, "`eke cache mount` over it at its defaults, in the same memory")),
    ]
}

fn table(all: &[Beside]) -> DataTable {
    let axes = AXES.iter().map(|(name, _)| (*name).to_owned());
    let others = ["eke", "p99", "model", "p99", "best", "way", "loses", "doubt"].map(str::to_owned);
    DataTable {
        title: "eke beside ext4 by cell: throughput and 99th percentile on the mount, then both by the model with this memory, and the model's best way. Cells in which eke loses come first".into(),
        columns: axes.chain(others).collect(),
        lines: all.iter().map(Beside::line).collect(),
        is_long: false,
    }
}

fn notes(options: &WebGrid, all: &[Beside]) -> Vec<String> {
    let count = |is: fn(&Beside) -> bool| all.iter().filter(|b| is(b)).count();
    let agrees = |b: &Beside| (b.throughput < LEAST) == (b.modelled < LEAST);
    vec![
        format!(
            "{} cells are finished. eke has less than {LEAST} of ext4's throughput in {}, and more than {MOST_P99} times its 99th percentile in {}. Mount and model agree in {} whether eke is slower than {LEAST}.",
            all.len(),
            count(|b| b.throughput < LEAST),
            count(|b| b.p99.is_some_and(|p99| p99 > MOST_P99)),
            all.iter().filter(|b| agrees(b)).count()
        ),
        format!(
            "Each cell: {} runs of each, in turn; a warm-up of at most {} s, then {} s of measurement. nginx and 32 clients; boxes of 96 MiB for files of 4 KiB, 128 MiB up to 1 MiB, else 512 MiB. A scan reads further files of 1.5 times the memory in turn.",
            options.repeats,
            options.warm_up.as_secs(),
            options.window.as_secs()
        ),
        "The content is generated: pages of text and noise that compress by the ratio of the cell, with LZ4 and zstd. The disks 2008, sd and nfs 1g are emulated; nfs 1g is a disk with 125 MB/s and 0.5 ms, without an NFS server. memory is this machine's own disk.".into(),
        which(options.quick).into(),
    ]
}

fn which(quick: bool) -> &'static str {
    if quick {
        "A quick grid: two cells with little content, each once; a small difference can be chance."
    } else {
        "The cells are the ten worst of the model and others that have every value of every axis at least three times."
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(index: usize, ext4: [f64; 3], eke: [f64; 3]) -> Vec<Row> {
        let mut samples = Samples::new(&Cell::all(false)[index]);
        for (variant, of) in VARIANTS.into_iter().zip([ext4, eke]) {
            for value in of {
                let measured = [(THROUGHPUT, "MB/s", value), (P99, "ms", 100.0), ("CPU", "%", 1.0)];
                samples.add(variant, &measured, value > 1.0);
            }
        }
        samples.rows()
    }

    #[test]
    fn cells_in_which_eke_loses_come_first_with_doubts() {
        let rows = [
            samples(1599, [10.0, 11.0, 12.0], [30.0, 31.0, 32.0]),
            samples(0, [10.0, 11.0, 12.0], [1.0, 8.0, 11.0]),
        ]
        .concat();
        assert_eq!(rows.len(), 2 * 2 * 3, "the CPU is not kept");
        let mut all: Vec<Beside> = finished(&rows).into_iter().filter_map(|c| Beside::of(c, &rows)).collect();
        all.sort_by_key(|b| !b.loses());
        let predicted = |variant: Variant, metric: &str| {
            let is = |r: &&Row| r.variant == variant.name() && r.metric == metric;
            with_prediction(rows.iter().find(is).unwrap(), &all).unwrap().predicted
        };
        let last = all.iter().find(|b| b.cell == Cell::all(false)[1599]).unwrap();
        assert_eq!(predicted(VARIANTS[1], THROUGHPUT), Some(11.0 * last.modelled));
        assert_eq!(predicted(VARIANTS[0], THROUGHPUT), None, "nothing predicts ext4");
        let lines = table(&all).lines;
        assert!(lines[0].starts_with("1.0\t0.3\tzipf 0.6\t4K\t2008\t0.73\t1.00\t"), "{}", lines[0]);
        assert!(lines[0].ends_with("\tslower\twithin the spread, caches not full"), "{}", lines[0]);
        assert!(lines[1].contains("\t2.82\t1.00\t") && lines[1].ends_with("\t\t"), "{}", lines[1]);
    }
}

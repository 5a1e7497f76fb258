//! The page's data: the snapshot of the agent or of this process, and the files of `eke up` that all users can read.

use eke_apply::journal::replay::Entry;
use eke_apply::{journal, script, state};
use eke_client::reading;
use eke_client::snapshot::Reader;
use eke_dash::view::{AppliedView, Caches, Change, Journal, Latency, Source, View, has_names};
use eke_linux::Root;
use eke_metrics::Cache;
use eke_model::applied::Applied;
use eke_model::step::Step;
use eke_swap::measure::measurements::{AlgorithmMeasurement, DiskLatency, Measured, label};

/// This machine.
pub struct Machine {
    reader: Reader,
    notes: Vec<String>,
}

impl Machine {
    /// The page always shows `notes`.
    pub fn new(root: Root, notes: Vec<String>) -> Self {
        Self { reader: Reader::new(root), notes }
    }
}

impl Source for Machine {
    fn view(&mut self) -> Result<View, String> {
        let reading = reading(&mut self.reader).map_err(|failure| failure.to_string())?;
        let root = self.reader.root();
        let applied: Option<Applied> = state::load(root, state::APPLIED);
        let measured: Option<Measured> = state::load(root, state::MEASURED);
        Ok(View {
            host: host(root),
            version: env!("CARGO_PKG_VERSION"),
            caches: together(&reading.caches),
            latencies: measured.iter().flat_map(|m| latencies(m, applied.as_ref())).collect(),
            applied: applied.as_ref().map(AppliedView::for_all_users),
            journal: in_force(root),
            notes: self.notes.clone(),
            snapshot: reading.snapshot,
        })
    }
}

/// The machine's name.
pub fn host(root: &Root) -> String {
    root.read("proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// The sum of all caches, without names of directories: the page is for all users.
fn together(caches: &[Cache]) -> Option<Caches> {
    let mut all = Caches::default();
    for cache in caches {
        all.mounts += 1;
        all.serving += u64::from(cache.serving);
        all.memory = all.memory + cache.memory;
        all.files = all.files + cache.raw;
        all.hits = all.hits.saturating_add(cache.hits);
        all.misses = all.misses.saturating_add(cache.misses);
        all.from_store = all.from_store + cache.from_store;
        all.from_backing = all.from_backing + cache.from_backing;
    }
    (all.mounts > 0).then_some(all)
}

fn in_force(root: &Root) -> Journal {
    match journal::entries(root) {
        Ok(entries) => for_all_users(&entries),
        Err(e) if e.is_permission() => Journal {
            hidden: Some(
                "Only root can read the journal of single changes. This prints it as a script and changes nothing:".into(),
            ),
            ..Journal::default()
        },
        Err(e) => Journal { hidden: Some(format!("The journal cannot be read: {e}.")), ..Journal::default() },
    }
}

/// Root's page is for all users, too, and the journal is for root alone: without changes that name users' groups, files or processes.
fn for_all_users(entries: &[Entry]) -> Journal {
    let (named, shown): (Vec<&Entry>, Vec<&Entry>) = entries.iter().partition(|e| has_names(&e.intent.step));
    let hidden = (!named.is_empty()).then(|| {
        format!(
            "Not shown to all users: changes of single groups, devices, files and processes, {} in all. This prints every change as a script and \
             changes nothing:",
            named.len()
        )
    });
    Journal { changes: shown.into_iter().map(change).collect(), hidden }
}

fn change(entry: &Entry) -> Change {
    let undo = script::lines(entry).trim_end().to_owned();
    Change { what: entry.intent.step.to_string(), why: entry.intent.reason.clone(), undo }
}

/// Latencies that `eke up` measured: of each algorithm, and of the disks.
fn latencies(measured: &Measured, applied: Option<&Applied>) -> Vec<Latency> {
    let chosen = applied.and_then(algorithm);
    let usable = measured.algorithms.iter().filter(|a| a.unusable.is_none());
    let of_algorithm = |a: &AlgorithmMeasurement| Latency {
        what: if a.estimated { format!("{} (estimated)", a.label()) } else { a.label() },
        chosen: chosen.as_ref().is_some_and(|label| *label == a.label()),
        p50_ns: a.load_p50.0,
        p99_ns: Some(a.load_p99.0),
    };
    let disk = |what: &str, disk: &DiskLatency| Latency {
        what: what.to_owned(),
        chosen: false,
        p50_ns: disk.p50.0,
        p99_ns: Some(disk.p99.0),
    };
    let disks = [
        measured.file_read.as_ref().map(|d| disk("file read", d)),
        measured.swap_disk.as_ref().map(|d| disk("swap disk", d)),
    ];
    usable.map(of_algorithm).chain(disks.into_iter().flatten()).collect()
}

/// The algorithm that was applied, as the measurement calls it.
fn algorithm(applied: &Applied) -> Option<String> {
    let mut steps = applied.plans.iter().flat_map(|plan| &plan.steps);
    steps.find_map(|planned| match &planned.step {
        Step::AddZram(zram) => {
            Some(label(&zram.algorithm, zram.params.as_deref(), zram.dictionary.is_some()))
        }
        Step::Set { knob, value, .. } if knob == "zswap.compressor" => Some(value.clone()),
        _ => None,
    })
}

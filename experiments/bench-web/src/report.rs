//! The report of all runs. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use eke_bench_core::Environment;
use eke_model::units::Bytes;
use eke_results::report::words::shown;
use eke_results::report::{Report, Role, Row, Variant as Compared};
use eke_results::rows::{Params, Rows, params};

use super::content::{Content, FileSystem};
use super::metrics::{self, READ, READS, THROUGHPUT, WARM_UP};
use super::plan::{Axis, DEFAULT_SHARE, Run, Variant};
use super::trial::Trial;
use super::{Options, client};

/// A measured run.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The run's index in the list of runs.
    pub run: usize,
    /// Its measurements.
    pub trial: Trial,
}

/// The compression ratio for which the project's targets are set.
const GOOD_RATIO: f64 = 2.4;

/// The name of a run: `eke over ext4, by connections (connections 64)`.
pub fn run_name(run: &Run) -> String {
    let (axis, position) = run.shown.first().cloned().unwrap_or((Axis::Base, None));
    let parts = [run.variant.name(), axis.suffix()].into_iter().filter(|part| !part.is_empty());
    let name = parts.collect::<Vec<_>>().join(", ");
    match position {
        Some((key, value)) => format!("{name} ({})", eke_results::report::words::parameter(key, &value)),
        None => name,
    }
}

/// The report.
pub fn report(
    environment: &Environment<'_>,
    options: &Options,
    (runs, contents): (&[Run], &BTreeMap<u32, Arc<Content>>),
    measured: &[Measured],
    mut notes: Vec<String>,
) -> Report {
    let rows = rows(runs, measured);
    notes.extend(about_the_content(contents));
    notes.extend(about_the_set_up(options));
    notes.extend(about_the_runs(runs, measured));
    notes.extend(about_the_winners(&rows));
    let mut axes = options.axes.clone();
    axes.sort_by_key(|axis| Axis::ALL.iter().position(|a| a == axis));
    Report {
        variants: variants(runs, options),
        metrics: metrics::metrics(&axes),
        rows,
        notes,
        ..environment.report("web")
    }
}

fn rows(runs: &[Run], measured: &[Measured]) -> Vec<Row> {
    let mut rows = Rows::default();
    for Measured { run, trial } in measured {
        let Some(run) = runs.get(*run) else { continue };
        let mut measurements = metrics::of(&trial.window);
        measurements.push((WARM_UP, "s", trial.warm_up.as_secs_f64()));
        for (axis, position) in &run.shown {
            let params = position.clone().map_or_else(Params::new, |position| params([position]));
            for (metric, unit, value) in measurements.iter().filter(|m| metrics::is_shown(m.0, *axis)) {
                rows.add(run.variant.name(), &params, &metrics::name(metric, *axis), unit, [*value]);
            }
        }
    }
    rows.done()
}

fn variants(runs: &[Run], options: &Options) -> Vec<Compared> {
    let present = Variant::ALL.into_iter().filter(|v| runs.iter().any(|r| r.variant == *v));
    let of = |variant: Variant| Compared {
        name: variant.name().to_owned(),
        role: role(variant),
        set_up: set_up(variant, options),
    };
    present.map(of).collect()
}

fn role(variant: Variant) -> Role {
    match variant {
        Variant::Ext4 => Role::Baseline,
        Variant::Ext4Twice | Variant::Btrfs | Variant::Erofs => Role::Peer,
        Variant::EkeExt4 | Variant::EkeBtrfs => Role::Ours,
        Variant::EkeSync => Role::Variation,
    }
}

fn set_up(variant: Variant, options: &Options) -> String {
    let (memory, share) = (options.base.memory, options.base.share);
    match variant {
        Variant::Ext4 => format!("ext4 on the disk, and a box of {memory}"),
        Variant::Ext4Twice => format!("the same in a box of {}", variant.memory(memory)),
        Variant::Btrfs => {
            format!(
                "btrfs with compress=zstd (level 3) on the disk, and a box of {memory}; its page cache is not compressed"
            )
        }
        Variant::Erofs => {
            format!(
                "EROFS, read-only, LZ4HC in clusters of 64 KiB, and a box of {memory}; its page cache is not compressed"
            )
        }
        Variant::EkeExt4 | Variant::EkeSync => {
            let when = if variant == Variant::EkeSync { "sync" } else { "async" };
            let memory_option =
                if share == DEFAULT_SHARE { String::new() } else { format!(" --memory {share}%") };
            format!("`eke cache mount{memory_option} --compress {when}` over ext4, all in a box of {memory}")
        }
        Variant::EkeBtrfs => format!("the same over btrfs with compress=zstd, all in a box of {memory}"),
    }
}

fn about_the_content(contents: &BTreeMap<u32, Arc<Content>>) -> Vec<String> {
    let mut notes = vec![
        "The files are in the classes of SPECweb2005 Support (16 sizes from 0.1 to 38 MB per directory), with their original sizes. Scaled 1 to 10 means 1.7 MB for each client instead of 17: one directory for 40 clients. Popular files have the same mix of classes.".to_owned(),
    ];
    for (clients, content) in contents {
        let on_disk = [FileSystem::Ext4, FileSystem::Btrfs, FileSystem::Erofs]
            .into_iter()
            .filter_map(|fs| Some(format!("{} {}", fs.name(), content.taken(fs)?)));
        notes.push(format!(
            "Content for {clients} clients: {} files, {}, {:.2} to 1 by LZ4 in blocks of 64 KiB. On the disk: {}.",
            content.files.len(),
            Bytes(content.total()),
            content.properties.ratio,
            on_disk.collect::<Vec<_>>().join(", ")
        ));
    }
    if let Some(content) = contents.values().next() {
        notes.push(format!("It is cut at random offsets from {}.", content.properties.corpus));
        if content.properties.ratio < GOOD_RATIO {
            notes.push(format!("This content compresses less than {GOOD_RATIO} to 1, for which the targets are set. Content that is already compressed, as most downloads today, gains nothing."));
        }
    }
    notes
}

fn about_the_set_up(options: &Options) -> Vec<String> {
    let base = &options.base;
    let disk = base.disk.as_ref().map_or_else(
        || "this machine's own disk, without the image's page cache".to_owned(),
        |name| format!("the slow disk `{name}`, served from outside the box, cold at the start of each run"),
    );
    let think = if base.think.is_zero() {
        "no pause".to_owned()
    } else {
        format!("a pause of {} ms", base.think.as_millis())
    };
    let mut notes = vec![
        format!(
            "{}. The box holds the server, its page cache and eke-cache: {} in all, without swap. The content lies on {disk}.",
            base.server.about(),
            base.memory
        ),
        format!(
            "Clients: {} persistent connections, {think} after a reply, complete files, popularity {}, the same sequence of requests in each run. Every length is checked, and the bytes of each {}th reply. They run on the same CPUs.",
            base.connections,
            base.requests,
            client::SAMPLED
        ),
        format!(
            "Each run warms up until the caches are full, at most {} s, and is measured for {} s.",
            options.warm_up.as_secs(),
            options.window.as_secs()
        ),
    ];
    if options.quick {
        notes.push(
            "A quick run: few variants, one point, by default each once; a small difference can be chance."
                .to_owned(),
        );
    }
    notes
}

fn about_the_runs(runs: &[Run], measured: &[Measured]) -> Vec<String> {
    let mut notes = Vec::new();
    let name = |h: &Measured| runs.get(h.run).map(run_name).unwrap_or_default();
    let mut cold: Vec<String> = measured.iter().filter(|h| !h.trial.filled).map(name).collect();
    cold.dedup();
    if !cold.is_empty() {
        notes.push(format!("The caches were perhaps not full when the warm-up ended: {}.", cold.join("; ")));
    }
    let mut ahead: BTreeMap<&str, u64> = BTreeMap::new();
    for h in measured {
        let variant = runs.get(h.run).map(|r| r.variant.name());
        ahead.extend(variant.zip(h.trial.read_ahead_kib));
    }
    if !ahead.is_empty() {
        let all = ahead.iter().map(|(name, kib)| format!("{name} {kib} KiB"));
        notes.push(format!(
            "The kernel's read-ahead, set by each file system: {}.",
            all.collect::<Vec<_>>().join(", ")
        ));
    }
    notes
}

/// The variants that beat eke at the base point, and why.
fn about_the_winners(rows: &[Row]) -> Vec<String> {
    let median = |metric: &str, variant: Variant| {
        let of = |r: &&Row| r.metric == metric && r.variant == variant.name();
        rows.iter().find(of).map(|r| r.median)
    };
    let throughput = |v: &Variant| median(THROUGHPUT, *v).unwrap_or(0.0);
    let eke = [Variant::EkeExt4, Variant::EkeBtrfs].into_iter();
    let Some(eke) = eke.max_by(|a, b| throughput(a).total_cmp(&throughput(b))) else { return Vec::new() };
    if throughput(&eke) <= 0.0 {
        return Vec::new();
    }
    let reads = |v: Variant| {
        let each = [READS, READ].map(|metric| {
            let of = |v| median(metric, v).map_or("none".to_owned(), shown);
            format!("{metric}: {}, {}: {}", of(v), eke.name(), of(eke))
        });
        each.join("; ")
    };
    let ahead = |v: &Variant| !v.uses_eke() && throughput(v) > throughput(&eke);
    let why = |v: Variant| format!("{} is ahead of eke: {} ({}.)", v.name(), why_ahead(v), reads(v));
    Variant::ALL.into_iter().filter(ahead).map(why).collect()
}

fn why_ahead(variant: Variant) -> &'static str {
    match variant {
        Variant::Ext4 => {
            "eke's store saves less of this disk's time than its misses cost: they are smaller reads and pass a file server."
        }
        Variant::Ext4Twice => {
            "with a small ratio, or little memory beside the programs, twice the page cache contains more than the store, and costs no CPU."
        }
        Variant::Btrfs => {
            "a miss reads compressed bytes, and far ahead, so the disk seeks less often. The content must already be compressed in btrfs; eke can be mounted over it."
        }
        Variant::Erofs => {
            "a miss reads compressed bytes that are close together, so it needs less of the disk's time. The content must already be in a compressed read-only image, and each change needs a new image."
        }
        Variant::EkeExt4 | Variant::EkeBtrfs | Variant::EkeSync => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Counters, Window};
    use crate::plan::{runs, tests::base};
    use std::time::Duration;

    fn measured(run: usize, megabytes: u64) -> Measured {
        let after = Counters { bytes: megabytes * 1_000_000, ..Counters::default() };
        let window = Window { seconds: 1.0, response_ms: vec![5.0], after, ..Window::default() };
        let trial =
            Trial { window, warm_up: Duration::from_secs(9), filled: true, read_ahead_kib: Some(128) };
        Measured { run, trial }
    }

    #[test]
    fn a_shared_point_is_on_each_curve_and_repeats_are_samples() {
        let runs = runs(&base(), &[Axis::Base, Axis::Load], &[Variant::EkeExt4], false);
        let rows = rows(&runs, &[measured(0, 50), measured(0, 60)]);
        let of = |metric: &str| rows.iter().filter(|r| r.metric == metric).collect::<Vec<_>>();
        assert_eq!(of("throughput")[0].samples, [50.0, 60.0]);
        let curve = of("throughput, by connections");
        assert_eq!((curve.len(), &curve[0].params["connections"]), (1, &32.into()));
        assert_eq!(of("warm-up").len(), 1, "only at the base point");
    }

    #[test]
    fn a_variant_ahead_of_eke_has_a_reason() {
        let runs = runs(&base(), &[Axis::Base], &[], false);
        let of = |variant| runs.iter().position(|r| r.variant == variant).unwrap();
        let all = [
            measured(of(Variant::Ext4), 20),
            measured(of(Variant::EkeExt4), 50),
            measured(of(Variant::EkeBtrfs), 60),
            measured(of(Variant::Erofs), 70),
        ];
        let notes = about_the_winners(&rows(&runs, &all));
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].starts_with("EROFS lz4hc is ahead of eke: "), "{notes:?}");
        assert!(about_the_winners(&rows(&runs, &all[..3])).is_empty());
    }

    #[test]
    fn runs_are_named_by_their_first_position() {
        let runs = runs(&base(), &[Axis::Base, Axis::Load], &[Variant::Ext4], false);
        let names: Vec<String> = runs.iter().map(run_name).collect();
        assert_eq!(names[0], "ext4");
        assert_eq!(names[1], "ext4, by connections (connections 4)");
    }
}

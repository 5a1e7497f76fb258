//! What each remedy gains and costs.

use eke_model::snapshot::{IoDisk, IoState, PrefetchEffect, PrefetchState, Snapshot};
use eke_model::units::{Bytes, MIB, Nanos};

use crate::refresh::{Cache, CacheStats, Refresh};
use crate::words::{idle_cpus, percent};

/// One remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remedy {
    /// `swap`, `cache`, `prefetch`, `reads`.
    pub name: &'static str,
    /// What it gains, or why it gains nothing.
    pub gained: String,
    /// What it costs; empty if it costs nothing.
    pub cost: String,
    /// Details for larger screens, a line each.
    pub details: Vec<String>,
}

/// All remedies, in the order of the screen.
pub fn remedies(refresh: &Refresh) -> Vec<Remedy> {
    vec![
        swap(&refresh.snapshot),
        cache(&refresh.caches),
        prefetch(refresh.snapshot.prefetch.as_ref()),
        reads(refresh),
    ]
}

fn off(name: &'static str, why: impl Into<String>) -> Remedy {
    Remedy { name, gained: why.into(), cost: String::new(), details: Vec::new() }
}

fn swap(s: &Snapshot) -> Remedy {
    if s.backend == "none" || s.backend.is_empty() {
        return off("swap", "off: there is no compressed swap (eke plan)");
    }
    let m = &s.model;
    let gained = match m.effective_ratio {
        Some(ratio) => format!("{}: {} in {}, {ratio:.2}:1", m.saved, m.held, m.pool),
        None => "nothing yet: no page had to leave RAM".into(),
    };
    let whose = if s.applied { String::new() } else { ", not eke's".into() };
    Remedy { name: "swap", gained, cost: swap_cost(s), details: swap_details(s, &whose) }
}

/// CPU time of kswapd, which compresses most pages, and of page-ins where their latency was measured. The compression in tasks at their
/// group's limit is not counted.
fn swap_cost(s: &Snapshot) -> String {
    let kswapd = percent(s.model.kswapd_cpu_share);
    match &s.prediction {
        Some(p) => {
            let loads = s.model.pages_in_per_s * p.load_p50_ns as f64 / 1e9;
            format!("kswapd {kswapd}, loads {}", percent(loads))
        }
        None => format!("kswapd {kswapd} of a CPU"),
    }
}

fn swap_details(s: &Snapshot, whose: &str) -> Vec<String> {
    let m = &s.model;
    let mut lines =
        vec![format!("{}{whose}; {:.0} major faults/s; {}", s.backend, m.major_faults_per_s, idle_cpus(m))];
    lines.extend(predicted(s));
    if let Some(back) = s.machine.written_back.filter(|b| b.0 > 0) {
        lines.push(format!("{back} of it written back to the disk"));
    }
    lines
}

/// The plan's prediction beside the present values.
pub fn predicted(s: &Snapshot) -> Option<String> {
    let (p, m) = (s.prediction.as_ref()?, &s.model);
    let ratio = m.effective_ratio.map_or("-".to_owned(), |r| format!("{r:.2}"));
    let hard = m.incompressible_share.map_or("-".to_owned(), percent);
    let holds = (m.ram.0 + m.saved.0) as f64 / m.ram.0.max(1) as f64;
    Some(format!(
        "predicted ratio {:.2}, now {ratio}; incompressible {}, now {hard}; capacity {:.2} times RAM, now {holds:.2}",
        p.ratio,
        percent(p.incompressible_share),
        p.holds_times_ram
    ))
}

fn cache(caches: &[Cache]) -> Remedy {
    if caches.is_empty() {
        return off("cache", "off: nothing is mounted (eke cache mount DIR)");
    }
    let all: Vec<&CacheStats> = caches.iter().filter_map(|c| c.stats.as_ref().ok()).collect();
    let sum = |of: fn(&CacheStats) -> u64| all.iter().map(|f| of(f)).sum::<u64>();
    let (store, backing) = (Bytes(sum(|f| f.from_store.0)), Bytes(sum(|f| f.from_backing.0)));
    let gained = match hit_rate(sum(|f| f.hits), sum(|f| f.misses)) {
        Some(rate) => format!("{} hits: {store} RAM, {backing} disk", percent(rate)),
        None if all.is_empty() => "unknown here (sudo eke cache status)".into(),
        None => "nothing yet: no block was read".into(),
    };
    let cost = if all.is_empty() {
        String::new()
    } else {
        format!("{} RAM for {}", Bytes(sum(|f| f.held.0)), Bytes(sum(|f| f.raw.0)))
    };
    Remedy { name: "cache", gained, cost, details: caches.iter().map(mount).collect() }
}

fn hit_rate(hits: u64, misses: u64) -> Option<f64> {
    (hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64)
}

fn mount(cache: &Cache) -> String {
    let f = match &cache.stats {
        Ok(stats) => stats,
        Err(why) => return format!("{}: {why}", cache.place),
    };
    let cost = |c: Option<Nanos>| c.map_or("?".to_owned(), |c| c.to_string());
    let rate =
        hit_rate(f.hits, f.misses).map_or("no reads yet".to_owned(), |r| format!("{} hits", percent(r)));
    format!(
        "{}: {rate}; blocks {} fast, {} recompressed, {} uncompressed; a hit {}, a miss {}",
        cache.place,
        f.fast,
        f.recompressed,
        f.plain,
        cost(f.store_cost),
        cost(f.backing_cost)
    )
}

fn prefetch(state: Option<&PrefetchState>) -> Remedy {
    let Some(p) = state else { return off("prefetch", "off: eke-prefetch does not run") };
    let unused = p.ahead.saturating_sub(p.used);
    Remedy {
        name: "prefetch",
        gained: format!("{} of {} starts predicted, {} used", p.predicted, p.launches, p.used),
        cost: format!("{unused} not used (yet)"),
        details: prefetch_details(p),
    }
}

fn prefetch_details(p: &PrefetchState) -> Vec<String> {
    let mut lines = vec![format!(
        "{} programs known; {} read ahead, up to {} used; {} read at starts",
        p.programs, p.ahead, p.used, p.at_exec
    )];
    lines.extend(p.off.as_ref().map(|why| format!("reads nothing ahead now: {why}")));
    lines.extend(effect(&p.effect));
    lines
}

/// The seconds saved, measured by the starts that were left alone; `None` before the first start that eke read for.
pub fn effect(effect: &PrefetchEffect) -> Option<String> {
    let PrefetchEffect { left_alone, others, read_for, summed, nearest, .. } = effect;
    let beside = format!("{left_alone} starts were left alone, {others} others recorded");
    let (Some([low, mean, high]), Some([least, sum, most])) = (effect.saved_s, effect.total_s) else {
        let needed = PrefetchEffect::LEAST;
        return (left_alone + others + read_for > 0).then(|| {
            format!(
                "seconds saved: not known yet: {nearest} of {needed} starts of one program left alone, and as many others; in all {beside}"
            )
        });
    };
    Some(format!(
        "saved {sum:.0} s ({least:.0} to {most:.0}) in {summed} of the {read_for} starts that it read for; a start takes {mean:.2} s less ({low:.2} to {high:.2}); {beside}"
    ))
}

fn reads(refresh: &Refresh) -> Remedy {
    let gained = match (refresh.reads, &refresh.snapshot.io) {
        (Some(r), _) => format!("99 of 100 within {}, half within {}", r.p99, r.p50),
        (None, Some(_)) => "none recently".into(),
        (None, None) => "how long the disks take (p99): not measured (eke up --govern-io)".into(),
    };
    let io = refresh.snapshot.io.as_ref();
    let cost =
        io.filter(|io| io.changes > 0).map(|io| format!("{} changes that throttle writers", io.changes));
    let details = io.map(governed).unwrap_or_default();
    Remedy { name: "reads", gained, cost: cost.unwrap_or_default(), details }
}

/// The changed settings that throttle writers, disk by disk.
fn governed(io: &IoState) -> Vec<String> {
    let disk = |disk: &IoDisk| {
        let rests = disk.rests_s.map(|s| format!("gave up for {s} s more"));
        let now: Vec<String> = disk.changed.iter().cloned().chain(rests).collect();
        (!now.is_empty()).then(|| format!("{}: {}", disk.name, now.join(", ")))
    };
    let mut lines = vec![format!("{} disks governed, latencies by {}", io.disks.len(), io.source)];
    lines.extend(crate::strip::strips(io));
    lines.extend(io.last.iter().cloned());
    lines.extend(io.disks.iter().filter_map(disk));
    lines
}

/// True if the pool has enough data (1 MiB) for a meaningful ratio.
pub fn holds_something(s: &Snapshot) -> bool {
    s.model.held.0 >= MIB
}

#[cfg(test)]
mod tests {
    use eke_model::model::Model;

    use super::*;

    fn of<'a>(remedies: &'a [Remedy], name: &str) -> &'a Remedy {
        remedies.iter().find(|r| r.name == name).unwrap()
    }

    #[test]
    fn what_is_off_says_so_and_what_would_be_done() {
        let all = remedies(&Refresh::default());
        assert!(all.iter().take(3).all(|r| r.gained.starts_with("off: ") && r.cost.is_empty()), "{all:?}");
        assert!(of(&all, "reads").gained.contains("not measured"));
    }

    #[test]
    fn the_hits_of_all_mounts_are_one_rate() {
        let stats = |hits, misses| CacheStats { hits, misses, held: Bytes::mib(10), ..CacheStats::default() };
        let caches = vec![
            Cache { place: "/a".into(), stats: Ok(stats(30, 10)) },
            Cache { place: "/b".into(), stats: Ok(stats(60, 0)) },
            Cache { place: "/c".into(), stats: Err("only its user and root see details".into()) },
        ];
        let all = remedies(&Refresh { caches, ..Refresh::default() });
        let cache = of(&all, "cache");
        assert!(cache.gained.starts_with("90.0 % hits: "), "{}", cache.gained);
        assert!(cache.cost.starts_with("20 MiB RAM"), "{}", cache.cost);
        assert_eq!(cache.details[2], "/c: only its user and root see details");
    }

    #[test]
    fn a_cache_whose_numbers_only_root_sees_has_none_here() {
        let caches =
            vec![Cache { place: "/a".into(), stats: Err("only its user and root see details".into()) }];
        let all = remedies(&Refresh { caches, ..Refresh::default() });
        let cache = of(&all, "cache");
        assert_eq!(
            (cache.gained.as_str(), cache.cost.as_str()),
            ("unknown here (sudo eke cache status)", "")
        );
    }

    #[test]
    fn somebody_elses_swap_is_not_called_ekes() {
        let snapshot = Snapshot { backend: "zram (lz4)".into(), ..Snapshot::default() };
        let all = remedies(&Refresh { snapshot, ..Refresh::default() });
        assert!(of(&all, "swap").details[0].starts_with("zram (lz4), not eke's; "));
    }

    #[test]
    fn pages_on_their_way_back_cost_what_was_measured() {
        let model = Model { kswapd_cpu_share: 0.021, pages_in_per_s: 1_000.0, ..Model::default() };
        let mut s = Snapshot { model, ..Snapshot::default() };
        assert_eq!(swap_cost(&s), "kswapd 2.1 % of a CPU");
        s.prediction = Some(eke_model::step::Prediction { load_p50_ns: 5_000, ..Default::default() });
        assert_eq!(swap_cost(&s), "kswapd 2.1 %, loads 0.5 %");
    }

    #[test]
    fn waste_is_what_was_read_and_not_used() {
        let state = PrefetchState {
            ahead: Bytes::mib(100),
            used: Bytes::mib(60),
            off: Some("the disk is fast".into()),
            ..PrefetchState::default()
        };
        let remedy = prefetch(Some(&state));
        assert_eq!(remedy.cost, "40 MiB not used (yet)");
        assert!(remedy.details[1].contains("the disk is fast"));
    }

    #[test]
    fn the_effect_is_shown_with_its_interval() {
        let mut of = PrefetchEffect::default();
        assert_eq!(effect(&of), None);
        (of.left_alone, of.others, of.nearest) = (3, 9, 1);
        assert_eq!(
            effect(&of).unwrap(),
            "seconds saved: not known yet: 1 of 2 starts of one program left alone, and as many others; in all 3 starts were left alone, 9 others recorded"
        );
        of.saved_s = Some([-0.25, 1.5, 3.251]);
        (of.read_for, of.summed, of.total_s) = (70, 60, Some([-15.0, 90.0, 195.06]));
        assert_eq!(
            effect(&of).unwrap(),
            "saved 90 s (-15 to 195) in 60 of the 70 starts that it read for; a start takes 1.50 s less (-0.25 to 3.25); 3 starts were left alone, 9 others recorded"
        );
    }

    #[test]
    fn what_holds_writers_back_is_said_beside_the_latencies() {
        let disk = IoDisk {
            name: "sda".into(),
            changed: vec!["nr_requests 8 (was 64)".into()],
            ..IoDisk::default()
        };
        let io = IoState { changes: 2, source: "bpf".into(), disks: vec![disk], ..IoState::default() };
        let snapshot = Snapshot { io: Some(io), ..Snapshot::default() };
        let all = remedies(&Refresh { snapshot, ..Refresh::default() });
        let reads = of(&all, "reads");
        assert_eq!(
            (reads.gained.as_str(), reads.cost.as_str()),
            ("none recently", "2 changes that throttle writers")
        );
        assert_eq!(reads.details[1], "sda: nr_requests 8 (was 64)");
    }

    #[test]
    fn prediction_stands_beside_fact() {
        let prediction = eke_model::step::Prediction { ratio: 3.1, ..Default::default() };
        let model = Model {
            ram: Bytes::mib(100),
            saved: Bytes::mib(50),
            effective_ratio: Some(2.9),
            ..Model::default()
        };
        let s = Snapshot { prediction: Some(prediction), model, ..Snapshot::default() };
        let sentence = predicted(&s).unwrap();
        assert!(
            sentence.starts_with("predicted ratio 3.10, now 2.90;") && sentence.ends_with("now 1.50"),
            "{sentence}"
        );
    }
}

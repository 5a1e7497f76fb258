//! A cache that serves, as text.

use std::fmt::Write as _;

use eke_cache_mounts::status::{
    AdmissionStats, RememberState, RememberStats, Status, StoreStats, TierStats, WatchStats, WorkerStats,
};
use eke_model::units::Nanos;
use eke_present::words::time;

use super::{Shown as _, no_worker, row, shared, spill};

pub(super) fn serving(out: &mut String, s: &Status) {
    let worker = s.worker_pid.map_or("no worker now".to_owned(), |pid| format!("worker {pid}"));
    row(out, "process", &format!("{}, {worker}, up {}", s.pid, time(s.up_s)));
    if let Some(aside) = &s.aside {
        let since = time(aside.since_s);
        row(out, "aside", &format!("for {since}: {}. Programs use the directory itself", aside.why));
    }
    if let Some(why) = &s.not_moved {
        let would = if s.aside.is_some() { "return" } else { "stand aside" };
        row(out, "would", &format!("{would}, since that gains more, but {why}"));
    }
    if s.restarts > 0 {
        let why = s.last_death.as_deref().unwrap_or("the reason is unknown");
        row(out, "restarts", &format!("{} of the worker; the last: {why}", s.restarts));
    }
    match &s.worker {
        Some(stats) => {
            stats_of(out, stats);
            for (name, text) in spill::rows(&stats.spill) {
                row(out, name, &text);
            }
            for (name, text) in shared::rows(&stats.shared) {
                row(out, name, &text);
            }
            if let Some(text) = remember(&stats.remember).filter(|_| s.settings.remember) {
                row(out, "warming", &text);
            }
        }
        None => row(out, "stats", &no_worker(s)),
    }
}

fn stats_of(out: &mut String, f: &WorkerStats) {
    memory(out, &f.store);
    store(out, &f.store);
    tier(out, &f.tier);
    admission(out, &f.admission);
    match (&f.size.last_reason, f.size.last_s) {
        (Some(why), Some(ago)) => row(out, "size", &format!("{} now: {why} ({} ago)", f.size.now, time(ago))),
        (Some(why), None) => row(out, "size", &format!("{} now: {why}", f.size.now)),
        (None, _) => row(out, "size", &format!("{}, as asked for", f.size.now)),
    }
    let files = &f.files;
    row(
        out,
        "files",
        &format!(
            "{} known, in {} of memory, with a ledger of {} and {} descriptors",
            files.known, files.memory, files.ledger, files.descriptors
        ),
    );
    row(out, "changes", &watch(&f.watch));
    for mount in &f.not_served {
        row(out, "not served", &format!("{}: {}", mount.place.shown(), mount.why));
    }
}

fn memory(out: &mut String, s: &StoreStats) {
    let ratio = s.ratio.map_or("empty".into(), |r| format!("{} of files, {r:.2} to 1", s.raw));
    row(out, "memory", &format!("{} of at most {}: {ratio}", s.held, s.limit));
    if s.queued.0 > 0 {
        row(out, "queued", &format!("{} wait for compression", s.queued));
    }
}

fn store(out: &mut String, s: &StoreStats) {
    let hits = match s.hit_rate {
        None => "no block was read yet".into(),
        Some(rate) => format!("{:.1} % of {} blocks", 100.0 * rate, s.hits + s.misses),
    };
    row(out, "hits", &hits);
    let blocks = s.zero + s.uncompressed + s.fast + s.recompressed;
    if blocks > 0 {
        let forms = format!(
            "{} fast, {} recompressed, {} uncompressed, {} zero",
            s.fast, s.recompressed, s.uncompressed, s.zero
        );
        row(out, "blocks", &format!("{blocks}: {forms}; {} evicted", s.evictions));
    }
    let reasons = [
        (s.incompressible, "do not compress"),
        (s.overrun, "came faster than they are compressed"),
        (s.stale, "changed on the way"),
        (s.no_room, "had no room"),
        (s.corrupted, "were corrupted in memory and read again"),
    ];
    let kept_out: Vec<String> =
        reasons.iter().filter(|(n, _)| *n > 0).map(|(n, why)| format!("{n} {why}")).collect();
    if !kept_out.is_empty() {
        row(out, "not kept", &kept_out.join(", "));
    }
}

fn tier(out: &mut String, t: &TierStats) {
    row(
        out,
        "read",
        &format!("{} from the store, {} from the disk; {} written", t.from_store, t.from_backing, t.written),
    );
    let cost = |c: Option<Nanos>| c.map_or("not known yet".into(), |c| c.to_string());
    row(
        out,
        "a block",
        &format!(
            "from the store {}, from the disk {}, compressing {}",
            cost(t.store_cost_ns),
            cost(t.backing_cost_ns),
            cost(t.compress_cost_ns)
        ),
    );
}

fn admission(out: &mut String, w: &AdmissionStats) {
    let mut text = format!("{} files admitted, {} not", w.admitted, w.declined);
    match &w.no_passthrough {
        None => {
            let _ = write!(
                text,
                "; {} by passthrough; {} open by passthrough now",
                w.passthrough, w.open_passthrough
            );
        }
        Some(why) => {
            let _ = write!(text, "; no passthrough: {why}");
        }
    }
    row(out, "admission", &text);
    for reason in &w.reasons {
        row(out, "", reason);
    }
}

fn watch(w: &WatchStats) -> String {
    let why = w.why.as_deref().unwrap_or("not asked for");
    if !w.on {
        return format!("seen when a file is opened; not watched: {why}");
    }
    let names = if w.names { ", so names and attributes stay in memory" } else { "" };
    let overflows = match w.overflows {
        0 => String::new(),
        n => format!("; its queue overflowed {n} times: names were asked for again, open files compared"),
    };
    format!("reported by the kernel at once{names}: {} so far{overflows}", w.changes)
}

/// Nothing if there is nothing to say.
pub(super) fn remember(r: &RememberStats) -> Option<String> {
    let why = r.why.as_deref();
    let of = || format!("{} of {} of what was hot", r.done, r.listed);
    Some(match r.state {
        RememberState::Off => format!("what is hot is not kept over an unmount: {}", why?),
        RememberState::Reading => of(),
        RememberState::Waiting => format!("{}; others use the disk now", of()),
        RememberState::Full => format!("{}; more does not fit", of()),
        RememberState::Done if r.listed.0 > 0 => format!("{} of what was hot were read again", r.listed),
        RememberState::Done => why?.to_owned(),
    })
}

//! The tier that a farm shares, as text.

use eke_cache_mounts::shared::SharedStats;
use eke_model::text::one_line;

/// The rows of `eke cache status`: names and texts. None without a tier.
pub fn rows(s: &SharedStats) -> Vec<(&'static str, String)> {
    if !s.on {
        return Vec::new();
    }
    let cost = s.cost_ns.map_or(String::new(), |cost| format!(", {cost} a block"));
    let of = if s.engine_limit.0 > 0 { format!(" of {}", s.engine_limit) } else { String::new() };
    let connected = match (s.connected, &s.why) {
        (0, Some(why)) => format!("no connection to the engine: {}", one_line(why)),
        (0, None) => "no connection to the engine yet".to_owned(),
        (_, _) => format!("{} connections, the engine uses {}{of}", s.connected, s.engine_memory),
    };
    let mut rows = vec![
        ("shared", connected),
        (
            "",
            format!(
                "{} of files from it in {} blocks{cost}; {} were not there",
                s.from_shared, s.hits, s.misses
            ),
        ),
        ("", format!("{} over the wire from it, {} to it in {} blocks", s.bytes_in, s.bytes_out, s.offered)),
    ];
    if s.open > 0 {
        rows.push((
            "",
            format!("{} of {} parts of the engine failed, and are asked again later", s.open, s.parts),
        ));
    }
    rows.extend(warnings(s).into_iter().map(|text| ("", text)));
    let faults = [
        (s.late, "came too late"),
        (s.failed, "failed"),
        (s.paused, "were not asked for after failures"),
        (s.refused, "had other bytes than were offered"),
        (s.not_offered, "were not offered"),
        (s.engine_refused, "were not stored by the engine"),
        (s.engine_evicted, "were evicted by the engine"),
    ];
    let listed = faults.iter().filter(|(n, _)| *n > 0).map(|(n, why)| format!("{n} {why}"));
    let listed = listed.collect::<Vec<_>>().join(", ");
    if !listed.is_empty() {
        rows.push(("", format!("blocks: {listed}")));
    }
    rows
}

/// What fails beside a connection that works, and settings by which a tier stores nothing sooner or later.
fn warnings(s: &SharedStats) -> Vec<String> {
    let why = s.why.as_ref().filter(|_| s.connected > 0);
    let failing = why.map(|why| format!("the last failure: {}", one_line(why)));
    let unlimited = s.engine_unlimited.then(|| {
        "the engine has no limit and grows until its machine has no memory: set maxmemory, and maxmemory-policy allkeys-lru"
            .to_owned()
    });
    let keeps_all = s
        .engine_keeps_all
        .then(|| "the engine refuses blocks when it is full: set maxmemory-policy allkeys-lru".to_owned());
    failing.into_iter().chain(unlimited).chain(keeps_all).collect()
}

#[cfg(test)]
mod tests {
    use eke_model::units::{Bytes, Nanos};

    use super::*;

    #[test]
    fn a_shared_tier_is_shown_if_there_is_one() {
        assert_eq!(rows(&SharedStats::default()), []);
        let stats = SharedStats {
            on: true,
            hits: 4_000,
            misses: 90,
            from_shared: Bytes::mib(250),
            cost_ns: Some(Nanos(600_000)),
            late: 2,
            refused: 1,
            bytes_in: Bytes::mib(100),
            offered: 90,
            bytes_out: Bytes::mib(2),
            open: 1,
            parts: 96,
            connected: 5,
            engine_memory: Bytes::mib(600),
            engine_limit: Bytes::mib(4096),
            ..SharedStats::default()
        };
        let full = SharedStats {
            on: true,
            connected: 6,
            engine_refused: 7,
            engine_unlimited: true,
            engine_keeps_all: true,
            why: Some("OOM: command not allowed".into()),
            ..SharedStats::default()
        };
        let none = SharedStats { on: true, why: Some("no\nroute".into()), ..SharedStats::default() };
        let shown =
            |stats| rows(stats).iter().map(|(name, text)| format!("{name:<12}{text}")).collect::<Vec<_>>();
        insta::assert_snapshot!([shown(&stats), shown(&none), shown(&full)].concat().join("\n"));
    }
}

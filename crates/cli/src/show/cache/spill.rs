//! Evicted blocks on a second disk as text.

use eke_cache_mounts::spill::SpillStats;

/// The rows of `eke cache status`: names and texts. None without a spill.
pub fn rows(s: &SpillStats) -> Vec<(&'static str, String)> {
    if !s.on {
        return Vec::new();
    }
    let restored = match s.restored {
        0 => String::new(),
        restored => format!("; the last mount left {restored}"),
    };
    let cost = s.cost_ns.map_or(String::new(), |cost| format!(", {cost} a block"));
    let mut rows = vec![
        (
            "spill",
            format!(
                "{} blocks in {} of at most {}, {} of memory{restored}",
                s.blocks, s.held, s.limit, s.memory
            ),
        ),
        ("", format!("{} read from it in {} blocks{cost}", s.from_spill, s.hits)),
        ("", format!("{} of at most {} written today", s.day_written, s.day_limit)),
    ];
    let reasons = [
        (s.unrequested, "were not requested again"),
        (s.present, "are there already"),
        (s.behind, "came faster than they are written"),
        (s.over_day, "came after the day's bytes were written"),
        (s.no_room, "had no room"),
    ];
    let faults = [
        (s.errors, "reads or writes failed, and cost a segment each"),
        (s.corrupted, "had other bytes than were written, and were read from the file"),
    ];
    let listed = |all: &[(u64, &str)]| {
        let some = all.iter().filter(|(n, _)| *n > 0).map(|(n, why)| format!("{n} {why}"));
        some.collect::<Vec<_>>().join(", ")
    };
    let texts = [("not written: ", listed(&reasons)), ("", listed(&faults))];
    let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
    rows.extend(texts.map(|(what, text)| ("", format!("{what}{text}"))));
    rows
}

#[cfg(test)]
mod tests {
    use eke_model::units::{Bytes, Nanos};

    use super::*;

    #[test]
    fn a_spill_is_shown_if_there_is_one() {
        assert_eq!(rows(&SpillStats::default()), []);
        let stats = SpillStats {
            on: true,
            limit: Bytes::mib(4096),
            held: Bytes::mib(600),
            memory: Bytes::mib(5),
            day_limit: Bytes::mib(8192),
            day_written: Bytes::mib(700),
            blocks: 18_000,
            restored: 9_000,
            hits: 4_000,
            from_spill: Bytes::mib(250),
            cost_ns: Some(Nanos(180_000)),
            unrequested: 70,
            over_day: 3,
            corrupted: 1,
            ..SpillStats::default()
        };
        let text: Vec<String> = rows(&stats).iter().map(|(name, text)| format!("{name:<12}{text}")).collect();
        insta::assert_snapshot!(text.join("\n"));
    }
}

//! Parses a guest's output. Pure. Unknown text is kept, and is never an error.

use std::collections::BTreeMap;

use eke_bench_desktop::session::Event;
use eke_linux::parse;
use eke_model::sample::VmCounters;
use eke_model::units::Bytes;
use serde::{Deserialize, Serialize};

/// The beginning of the lines that a guest writes for the host.
pub const MARK: &str = "@eke-guest ";

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GuestOutcome {
    /// The session's events.
    pub events: Vec<Event>,
    /// Was the peer set up by its package (`package`) or by documented values (`values`)? Empty where there is no choice.
    pub set_up_by: String,
    /// Settings at the beginning of the session: `vm.swappiness`, `zram0.comp_algorithm`, ...
    pub settings: BTreeMap<String, String>,
    /// The RAM of the guest's kernel.
    pub memory: Bytes,
    /// RAM available to the session.
    pub available: Bytes,
    /// The kernel's counters of the session.
    pub counters: Counters,
    /// The peak of the compressed pools.
    pub fullest: Pool,
    /// The least available memory, if it was sampled.
    pub least_available: Option<Bytes>,
    /// The kernel's messages about killed processes.
    pub killed: Vec<String>,
    /// The measurement of `eke up` ([`super::measure`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<String>,
    /// Why it could not be set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// The exit status of the session's driver.
    pub session_status: Option<i32>,
    /// The time was over before the session. The outcome has the events until then, and no counters.
    #[serde(default)]
    pub timed_out: bool,
    /// Other output.
    pub other: Vec<String>,
    /// The whole run with the guest's boot, on the host's clock.
    pub seconds: f64,
}

/// The kernel's counters, in pages unless the name has another unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Processes killed for lack of memory.
    pub oom_kills: u64,
    /// Pages written to swap areas (zram is one).
    pub swapped_out: u64,
    /// Pages read from swap areas.
    pub swapped_in: u64,
    /// Pages that zswap took.
    pub zswap_out: u64,
    /// Pages that zswap gave back.
    pub zswap_in: u64,
    /// Major page faults.
    pub major_faults: u64,
    /// File pages read again soon after their eviction (refaults).
    pub file_refaults: u64,
}

/// The contents of compressed pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Pool {
    /// Pages in zram, uncompressed.
    pub zram_original: Bytes,
    /// The same, compressed.
    pub zram_compressed: Bytes,
    /// The memory of zram for them.
    pub zram_used: Bytes,
    /// Pages in zswap, uncompressed.
    pub zswap_original: Bytes,
    /// The memory of zswap for them.
    pub zswap_used: Bytes,
}

impl Pool {
    /// All uncompressed bytes.
    #[must_use]
    pub fn original(&self) -> Bytes {
        self.zram_original + self.zswap_original
    }
}

/// Parses a guest's output. `seconds` stays 0.
#[must_use]
pub fn parse(output: &str) -> GuestOutcome {
    let mut outcome = GuestOutcome::default();
    let mut texts = BTreeMap::<String, String>::new();
    let mut open: Option<String> = None;
    for line in output.lines() {
        match (line.strip_prefix(MARK), &open) {
            (Some("end"), _) => open = None,
            (Some(line), _) => open = script_line(&mut outcome, line).or(open),
            (None, Some(name)) => *texts.entry(name.clone()).or_default() += &format!("{line}\n"),
            (None, None) => hear(&mut outcome, line),
        }
    }
    let text = |name: &str| texts.get(name).map(String::as_str).unwrap_or_default();
    let memory = parse::meminfo::parse(text("before-meminfo"));
    (outcome.memory, outcome.available) = (memory.total, memory.available);
    if texts.contains_key("after-vmstat") {
        let (before, after) = (text("before-vmstat"), text("after-vmstat"));
        outcome.counters = between(&parse::vmstat::parse(before), &parse::vmstat::parse(after));
    }
    outcome
}

/// The event in a line, if it is one.
#[must_use]
pub fn event(line: &str) -> Option<Event> {
    line.starts_with('{').then(|| serde_json::from_str(line).ok()).flatten()
}

/// Parses a line of the script. Returns the name of a text that begins with it.
fn script_line(outcome: &mut GuestOutcome, line: &str) -> Option<String> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    match word {
        "text" => return Some(rest.to_owned()),
        "failed" => outcome.failed = Some(rest.to_owned()),
        "by" => rest.clone_into(&mut outcome.set_up_by),
        "killed" => outcome.killed.push(rest.to_owned()),
        "measured" => outcome.measured = Some(rest.to_owned()),
        "session" => outcome.session_status = rest.parse().ok(),
        "pool" => pool(outcome, rest),
        "set" => {
            let (key, value) = rest.split_once(' ').unwrap_or((rest, ""));
            outcome.settings.insert(key.to_owned(), value.to_owned());
        }
        _ => outcome.other.push(line.to_owned()),
    }
    None
}

fn hear(outcome: &mut GuestOutcome, line: &str) {
    match event(line) {
        Some(event) => outcome.events.push(event),
        None if line.is_empty() => {}
        None => outcome.other.push(line.to_owned()),
    }
}

fn pool(outcome: &mut GuestOutcome, text: &str) {
    let numbers: Option<Vec<u64>> = text.split(' ').map(|word| word.parse().ok()).collect();
    let Some([original, compressed, used, stored, pool, available]) = numbers.as_deref() else { return };
    let now = Pool {
        zram_original: Bytes(*original),
        zram_compressed: Bytes(*compressed),
        zram_used: Bytes(*used),
        zswap_original: Bytes(*stored),
        zswap_used: Bytes(*pool),
    };
    if now.original() > outcome.fullest.original() {
        outcome.fullest = now;
    }
    let least = outcome.least_available.unwrap_or(Bytes(u64::MAX));
    outcome.least_available = Some(least.min(Bytes(*available)));
}

fn between(before: &VmCounters, after: &VmCounters) -> Counters {
    let counted = |what: fn(&VmCounters) -> u64| what(after).saturating_sub(what(before));
    Counters {
        oom_kills: counted(|c| c.oom_kill),
        swapped_out: counted(|c| c.pswpout),
        swapped_in: counted(|c| c.pswpin),
        zswap_out: counted(|c| c.zswpout),
        zswap_in: counted(|c| c.zswpin),
        major_faults: counted(|c| c.pgmajfault),
        file_refaults: counted(|c| c.refault_file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eke_bench_desktop::session::End;
    use proptest::prelude::*;

    const RUN: &str = "plan: zram\n@eke-guest by package\n@eke-guest set vm.swappiness 60\n\
        @eke-guest text before-meminfo\nMemTotal: 77552 kB\nMemAvailable: 54044 kB\n@eke-guest end\n\
        @eke-guest text before-vmstat\npswpout 5\noom_kill 0\n@eke-guest end\n\
        {\"event\":\"ready\",\"seconds\":2.5}\n@eke-guest pool 4096 1024 2048 0 0 9000\n\
        @eke-guest pool 8192 1025 2049 0 0 8000\n@eke-guest pool 0 0 0 0 0 9000\nXlib: a warning\n\
        {\"event\":\"ended\",\"end\":\"killed\",\"what\":\"viewer of document 1\",\"signal\":9}\n\
        @eke-guest session 0\n@eke-guest text after-vmstat\npswpout 105\noom_kill 1\npswpin 7\n@eke-guest end\n\
        @eke-guest killed Out of memory: Killed process 7 (xpdf)\n";

    #[test]
    fn a_run_is_taken_apart() {
        let outcome = parse(RUN);
        let end = End::Killed { what: "viewer of document 1".into(), signal: Some(9) };
        assert_eq!(outcome.events, [Event::Ready { seconds: 2.5 }, Event::Ended(end)]);
        let counters = Counters { oom_kills: 1, swapped_out: 100, swapped_in: 7, ..Counters::default() };
        assert_eq!(outcome.counters, counters);
        assert_eq!((outcome.memory, outcome.available), (Bytes(77552 << 10), Bytes(54044 << 10)));
        assert_eq!((outcome.fullest.original(), outcome.fullest.zram_used), (Bytes(8192), Bytes(2049)));
        assert_eq!(outcome.least_available, Some(Bytes(8000)));
        assert_eq!((outcome.set_up_by.as_str(), outcome.session_status), ("package", Some(0)));
        assert_eq!(outcome.settings["vm.swappiness"], "60");
        assert_eq!(outcome.other, ["plan: zram", "Xlib: a warning"]);
        assert_eq!(outcome.killed.len(), 1);
    }

    #[test]
    fn a_run_that_broke_off_counts_nothing() {
        let half = &RUN[..RUN.find("@eke-guest session").unwrap()];
        assert_eq!(parse(half).counters, Counters::default());
        assert_eq!(parse("@eke-guest failed zram has no zstd\n").failed.unwrap(), "zram has no zstd");
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text in "(@eke-guest |text |end|pool |set |\\{|[0-9]+ ?|\\PC|\n){0,60}") {
            let outcome = parse(&text);
            prop_assert!(outcome.other.len() <= text.lines().count());
        }

        #[test]
        fn events_are_found_among_whatever_is_said(documents in prop::collection::vec((0usize..9, 0u8..99), 0..9),
            noise in "[a-z :]{0,20}") {
            let events: Vec<Event> =
                documents.iter().map(|&(document, seconds)| Event::Switched { document, seconds: seconds.into() }).collect();
            let lines: Vec<String> =
                events.iter().map(|event| format!("{noise}\n{}\n", serde_json::to_string(event).unwrap())).collect();
            prop_assert_eq!(parse(&lines.concat()).events, events);
        }
    }
}

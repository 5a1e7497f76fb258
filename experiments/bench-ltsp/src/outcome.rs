//! What one client did, and the rows of it. Pure.

use eke_bench_desktop::session::metrics as sessions;
use eke_bench_memory::guest::GuestOutcome;
use eke_bench_memory::guest::outcome::{MARK, parse as parse_guest};
use eke_results::report::{Metric, less, more};
use eke_results::rows::{Rows, params};
use serde::{Deserialize, Serialize};

use crate::faults::Survived;
use crate::plan::Round;
use crate::session::PAGES;

/// An echo is good within this time on a real CPU.
const USABLE_S: f64 = 2.0;

/// What one client did in one run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Measurement {
    /// The client's seconds from its kernel's start to its desktop.
    pub desktop_s: Option<f64>,
    /// Bytes that the server sent until then.
    pub boot_bytes: Option<u64>,
    /// Bytes that the server sent from then to the session's end.
    pub session_bytes: Option<u64>,
    /// The session.
    pub guest: GuestOutcome,
    /// Host's seconds of each echo beside the load.
    pub echoes: Vec<f64>,
    /// Whether the load was there at the end; `None` if it was not begun.
    pub survived: Option<bool>,
    /// The time was over.
    pub timed_out: bool,
    /// What the session survived, if the run had faults.
    #[serde(default)]
    pub faults: Survived,
}

/// What a client has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It boots.
    Boot,
    /// Its desktop is up.
    Desktop,
    /// The session has ended.
    Load,
    /// The load has ended.
    Done,
}

/// What a client's output says that it has reached.
#[must_use]
pub fn stage(output: &str) -> Stage {
    let reached = |line: &str| match line.strip_prefix(MARK)?.split(' ').next()? {
        "desktop" => Some(Stage::Desktop),
        "session" => Some(Stage::Load),
        "load" if line.ends_with("ends") => Some(Stage::Done),
        _ => None,
    };
    output.lines().filter_map(reached).max().unwrap_or(Stage::Boot)
}

/// How many documents the session has opened so far.
#[must_use]
pub fn opened(output: &str) -> usize {
    output.lines().filter(|line| line.starts_with("{\"event\":\"opened\"")).count()
}

/// The measurement in a client's output; the host's part is left empty.
#[must_use]
pub fn parse(output: &str) -> Measurement {
    let line = |word: &str| output.lines().find_map(|line| line.strip_prefix(MARK)?.strip_prefix(word));
    Measurement {
        desktop_s: line("desktop ").and_then(|text| text.trim().parse().ok()),
        survived: line("stressor ").map(|text| text.trim() == "survived"),
        guest: parse_guest(output),
        ..Measurement::default()
    }
}

const HELD: &str = "documents held";
const PAGE: &str = "page turn";
const SWITCH: &str = "window switch";
const BOOT: &str = "boot to login";
const BOOT_BYTES: &str = "sent to a client until its login";
const SESSION_BYTES: &str = "sent to a client during its session";
const USABLE: &str = "echoes within 2 s under load";
const ECHO: &str = "longest echo under load";
const SURVIVED: &str = "the load survived";

const HANG: &str = "goes on after a minute without its server";
const RESTART: &str = "goes on after its server was restarted";

/// The metrics of the report.
#[must_use]
pub fn metrics() -> Vec<Metric> {
    let emulated = "on an emulated CPU, 10 to 18 times slower: only ratios between variants count";
    vec![
        more(
            HELD,
            &format!(
                "documents opened and leafed through {PAGES} pages before one was killed or a page took too long"
            ),
        ),
        less(PAGE, &format!("from the key to the page drawn; {emulated}")),
        less(SWITCH, &format!("from the request for the first document's window to it drawn; {emulated}")),
        less(BOOT, &format!("from the kernel's start to the desktop; {emulated}")),
        less(BOOT_BYTES, "what the server sent until then, on the client's own link, with kernel and initrd"),
        less(
            SESSION_BYTES,
            "what the server sent from the desktop to the session's end, also where the session ended early",
        ),
        more(
            USABLE,
            "share of lines through an open ssh login that came back within 2 s of the emulated machine's clock, while a program as large as RAM runs for a minute",
        ),
        less(
            ECHO,
            &format!("the longest of these; one that did not come back counts until the end; {emulated}"),
        ),
        more(SURVIVED, "1 if that program, whose pages compress 3 to 1, was not ended by the kernel"),
        more(
            HANG,
            "1 if the session opened another document after the server could not be reached for a minute",
        ),
        more(
            RESTART,
            "1 if the session opened another document after NFS, TFTP and DHCP were ended and, 20 s later, started anew",
        ),
    ]
}

/// Adds one client of one run.
pub fn add(round: &Round, measurement: &Measurement, rows: &mut Rows) {
    let params = params([("client_mib", round.memory_mib.into())]);
    let mut put =
        |metric, unit, samples: Vec<f64>| rows.add(round.means.name(), &params, metric, unit, samples);
    let of_1 = |yes: bool| f64::from(u8::from(yes));
    if round.has_faults {
        put(HANG, "of 1", measurement.faults.hang.map(of_1).into_iter().collect());
        put(RESTART, "of 1", measurement.faults.restart.map(of_1).into_iter().collect());
        return;
    }
    let events = &measurement.guest.events;
    let held = sessions::capacity(events, PAGES).0;
    put(HELD, "documents", vec![held as f64]);
    put(PAGE, "s", sessions::browsed(events).into_iter().flat_map(|b| b.seconds).collect());
    put(SWITCH, "s", sessions::switches(events));
    put(BOOT, "s", measurement.desktop_s.into_iter().collect());
    put(BOOT_BYTES, "MB", measurement.boot_bytes.map(megabytes).into_iter().collect());
    put(SESSION_BYTES, "MB", measurement.session_bytes.map(megabytes).into_iter().collect());
    let echoes = &measurement.echoes;
    if !echoes.is_empty() {
        let good = echoes.iter().filter(|s| **s <= USABLE_S).count();
        put(USABLE, "of 1", vec![good as f64 / echoes.len() as f64]);
        put(ECHO, "s", vec![echoes.iter().copied().fold(0.0, f64::max)]);
    }
    put(SURVIVED, "of 1", measurement.survived.map(of_1).into_iter().collect());
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// How a client's session ended, for the notes.
#[must_use]
pub fn note(round: &Round, client: usize, measurement: &Measurement) -> String {
    let held = sessions::capacity(&measurement.guest.events, PAGES).0;
    let end = if round.has_faults {
        "how it ended was not looked at".to_owned()
    } else if measurement.timed_out {
        "the time limit was reached, so this is \"at least\"".to_owned()
    } else {
        sessions::describe_end(&measurement.guest.events)
    };
    let killed = match measurement.guest.counters.oom_kills {
        n if n > 0 && sessions::end(&measurement.guest.events).is_none() => {
            format!("; the kernel killed {n} programs for lack of memory")
        }
        _ => String::new(),
    };
    let login = if measurement.survived.is_some() && measurement.echoes.is_empty() {
        "; no login was open beside the load"
    } else {
        ""
    };
    let pool = measurement.guest.fullest;
    let zram = match pool.zram_original.0 >> 20 {
        0 => String::new(),
        mib => format!("; zram held {mib} MiB in {} MiB", pool.zram_used.0 >> 20),
    };
    format!("{}, client {}: {held} held, {end}{killed}{zram}{login}.", round.name(), client + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Means;

    const OUTPUT: &str = "@eke-guest desktop 41.5\n{\"event\":\"ready\",\"seconds\":2.5}\n\
        {\"event\":\"opened\",\"document\":0,\"seconds\":3.0,\"content\":1}\n@eke-guest session 0\n@eke-guest load begins\n\
        @eke-guest stressor survived\n@eke-guest load ends\n";

    #[test]
    fn a_clients_output_is_taken_apart() {
        let measurement = parse(OUTPUT);
        assert_eq!((measurement.desktop_s, measurement.survived), (Some(41.5), Some(true)));
        assert_eq!(measurement.guest.events.len(), 2);
    }

    #[test]
    fn stages_follow_each_other() {
        let until = |word: &str| stage(&OUTPUT[..OUTPUT.find(word).unwrap_or(OUTPUT.len())]);
        assert_eq!(
            [until("@eke-guest desktop"), until("@eke-guest session"), until("@eke-guest load"), until("x")],
            [Stage::Boot, Stage::Desktop, Stage::Load, Stage::Done]
        );
    }

    #[test]
    fn a_note_says_what_is_missing() {
        let round = Round { memory_mib: 256, means: Means::Eke, round: 1, has_faults: false };
        let without = note(&round, 0, &parse(OUTPUT));
        assert!(without.contains("0 held, it ended without a last event"), "{without}");
        assert!(without.ends_with("no login was open beside the load."), "{without}");
        let with = note(&round, 0, &Measurement { echoes: vec![0.1], ..parse(OUTPUT) });
        assert!(!with.contains("login"), "{with}");
    }

    #[test]
    fn echoes_become_a_share_and_the_longest() {
        let measurement = Measurement { echoes: vec![0.1, 3.0, 0.2, 0.1], ..parse(OUTPUT) };
        let mut rows = Rows::default();
        add(
            &Round { memory_mib: 124, means: Means::Eke, round: 1, has_faults: false },
            &measurement,
            &mut rows,
        );
        let rows = rows.done();
        let median = |metric| rows.iter().find(|row| row.metric == metric).map(|row| row.median);
        assert_eq!((median(USABLE), median(ECHO), median(HELD)), (Some(0.75), Some(3.0), Some(0.0)));
    }
}

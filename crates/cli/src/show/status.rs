//! A snapshot as text, for `eke status`.

use std::fmt::Write as _;

use eke_model::snapshot::{Event, GuardState, Snapshot};
use eke_model::step::Prediction;
use eke_model::text::one_line;
use eke_model::units::Nanos;
use eke_prefetch_model::source::TraceMethod;
use eke_present::remedies::Remedy;
use eke_present::scarce::{self, Resource};
use eke_present::words;

use super::refresh::refresh;
use crate::documents::Status;

/// `eke status`.
pub fn text(document: &Status) -> String {
    let s = &document.snapshot;
    let mut out = headline(s) + "\n\n";
    row(&mut out, "short of", &scarce::sentence(s));
    row(&mut out, "waiting", &waiting(s));
    row(&mut out, "memory", &memory(s));
    row(&mut out, "pages", &pages(s));
    out += &remedies(document);
    if let Some(guard) = &s.guard {
        row(&mut out, "guard", &guarded(guard));
    }
    if let Some(ended) = ended(s) {
        row(&mut out, "ended", &ended);
    }
    if let Some(predicted) = predicted(s) {
        row(&mut out, "predicted", &predicted);
    }
    // The end of a program is not said twice.
    if let Some(decided) = decided(s).filter(|_| s.ended.last() != s.events.last()) {
        row(&mut out, "decided", &decided);
    }
    out
}

/// A line of `eke status` and of `eke`.
pub fn row(out: &mut String, name: &str, text: &str) {
    let _ = writeln!(out, "{name:<11} {}", one_line(text));
}

fn headline(s: &Snapshot) -> String {
    let what = match (s.applied, s.backend.as_str()) {
        (true, "none") => {
            "eke's plan is applied, but no compressed swap is on; `eke up` swaps eke's on again, or says that it is gone: then `eke down` and `eke up` set it up again".into()
        }
        (true, backend) => format!("eke's plan is applied: {backend}"),
        (false, "none") => "nothing is applied, and there is no compressed swap".into(),
        (false, backend) => {
            format!("nothing is applied; compressed swap from another source: {backend}")
        }
    };
    let agent = s.agent.as_ref().map_or_else(
        || absent(s).to_owned(),
        |a| {
            format!(
                "agent {} up {}, resident {}, {} ms CPU",
                a.pid,
                words::time(a.up_s),
                a.resident,
                a.cpu_ms
            )
        },
    );
    one_line(&format!("{what}; {agent}")).into_owned()
}

fn absent(s: &Snapshot) -> &'static str {
    match s.agent_silent {
        Some(_) => "the agent does not answer, so these are numbers without it",
        None => "the agent is not running",
    }
}

fn waiting(s: &Snapshot) -> String {
    let one = |r: &Resource| match r.pressure {
        Some(p) => format!("{} {:.1} %", r.name, p.some_avg10),
        None => format!("{} not counted", r.name),
    };
    let all: Vec<String> = scarce::resources(s).iter().map(one).collect();
    format!("for {} (some task, share of the last 10 s)", all.join(", for "))
}

/// How RAM is split.
pub fn memory(s: &Snapshot) -> String {
    let parts: Vec<String> =
        eke_present::memory::parts(s).iter().map(|p| format!("{} {}", p.name, p.size)).collect();
    format!("{} of {} available; {}", s.model.available, s.model.ram, parts.join(", "))
}

fn pages(s: &Snapshot) -> String {
    let m = &s.model;
    format!(
        "{:.0}/s in, {:.0}/s out, {:.0} major faults/s; {}; {} OOM kills since boot",
        m.pages_in_per_s,
        m.pages_out_per_s,
        m.major_faults_per_s,
        words::idle_cpus(m),
        m.oom_kills
    )
}

/// A line for each remedy, and for each cache.
pub fn remedies(document: &Status) -> String {
    let mut out = String::new();
    for remedy in eke_present::remedies::remedies(&refresh(document)) {
        match remedy.name {
            "cache" if !document.caches.is_empty() => out += &super::cache::lines(&document.caches),
            name => row(&mut out, name, &gained(&remedy)),
        }
        if remedy.name == "prefetch" {
            prefetch(&mut out, &document.snapshot);
        }
    }
    out
}

/// Why prefetch does less than it could.
fn prefetch(out: &mut String, s: &Snapshot) {
    let Some(state) = &s.prefetch else { return };
    if let Some(why) = &state.off {
        row(out, "", &format!("reads nothing ahead now: {why}"));
    }
    if let Some(effect) = eke_present::remedies::effect(&state.effect) {
        row(out, "", &effect);
    }
    if !state.source.is_empty() && state.source != TraceMethod::Bpf.name() {
        row(out, "", &format!("sees launches by {}", state.source));
    }
}

fn guarded(guard: &GuardState) -> String {
    match &guard.off {
        Some(why) => format!("off: {why}"),
        None => format!(
            "{}; programs ended because memory was short: {}, stopped for a moment: {}",
            match &guard.last_resort {
                Some(why) => format!("the last resort: {why}"),
                None if guard.without_psi =>
                    "on (without PSI it acts only when memory is exhausted)".to_owned(),
                None => "on".to_owned(),
            },
            guard.ended,
            guard.stops
        ),
    }
}

fn gained(remedy: &Remedy) -> String {
    if remedy.cost.is_empty() {
        remedy.gained.clone()
    } else {
        format!("gained {}; cost {}", remedy.gained, remedy.cost)
    }
}

fn predicted(s: &Snapshot) -> Option<String> {
    let p = s.prediction.as_ref()?;
    let now = eke_present::remedies::predicted(s)?;
    Some(format!("{}; {}", now.trim_start_matches("predicted "), page_in(p)))
}

/// The plan measured it on a scratch device. The kernel counts page-ins of the machine's swap, and not their time.
fn page_in(p: &Prediction) -> String {
    match (Nanos(p.load_p50_ns), Nanos(p.load_p99_ns)) {
        (Nanos(0), _) => "how long a page-in takes (p50, p99): not measured".to_owned(),
        (p50, p99) => format!("a page-in takes {p50} (p99 {p99}), now: not measured"),
    }
}

/// The agent's last event, and when it was.
pub fn decided(s: &Snapshot) -> Option<String> {
    s.events.last().map(|event| format!("{}: {}", ago(s, event), event.named()))
}

/// The last program that the guard ended, by the name that this user may know, and why.
fn ended(s: &Snapshot) -> Option<String> {
    let event = s.ended.last()?;
    let why = event.text.strip_prefix("Ended: ").unwrap_or(&event.text);
    let name = event.name().map(|name| format!("\"{name}\", ")).unwrap_or_default();
    Some(format!("{}: {name}{why}", ago(s, event)))
}

fn ago(s: &Snapshot, event: &Event) -> String {
    format!("{} ago", words::time(s.unix_s.saturating_sub(event.unix_s)))
}

/// The header of the lines of `eke run`.
pub fn live_header() -> String {
    format!(
        "{:>10} {:>10} {:>10} {:>6} {:>9} {:>9} {:>8}",
        "available", "held", "saved", "ratio", "in/s", "out/s", "waiting"
    )
}

/// A dash for less than 1 MiB: the swap header and the allocator's first pages.
fn held(bytes: eke_model::units::Bytes) -> String {
    if bytes.0 < eke_model::units::MIB { "-".into() } else { bytes.to_string() }
}

/// One line of `eke run`.
pub fn live_line(s: &Snapshot) -> String {
    let m = &s.model;
    let ratio = m.effective_ratio.map_or("-".into(), |r| format!("{r:.2}"));
    let waiting = m.waiting_share.map_or("-".into(), |w| format!("{:.1} %", 100.0 * w));
    format!(
        "{:>10} {:>10} {:>10} {ratio:>6} {:>9.0} {:>9.0} {waiting:>8}",
        m.available.to_string(),
        held(m.held),
        held(m.saved),
        m.pages_in_per_s,
        m.pages_out_per_s
    )
}

#[cfg(test)]
mod tests {
    use eke_model::model::Model;
    use eke_model::sample::{Memory, Pressure};
    use eke_model::snapshot::{AgentState, Machine, PrefetchState, Program};
    use eke_model::units::Bytes;

    use super::*;

    fn waits(some_avg10: f64) -> Option<Pressure> {
        Some(Pressure { some_avg10, ..Pressure::default() })
    }

    fn machine() -> Machine {
        let memory = Memory {
            total: Bytes::mib(1024),
            free: Bytes::mib(50),
            anonymous: Bytes::mib(500),
            file_cache: Bytes::mib(250),
            ..Memory::default()
        };
        let (memory_pressure, io_pressure) = (waits(21.3), waits(0.4));
        Machine { memory, memory_pressure, io_pressure, ..Machine::default() }
    }

    /// A machine with everything.
    pub fn busy() -> Snapshot {
        Snapshot {
            agent_silent: None,
            agent: Some(AgentState { pid: 99, up_s: 7_300, resident: Bytes::mib(3), cpu_ms: 120 }),
            applied: true,
            backend: "zram (zstd)".into(),
            prediction: Some(Prediction {
                ratio: 3.1,
                holds_times_ram: 2.05,
                load_p50_ns: 5_700,
                load_p99_ns: 13_100,
                incompressible_share: 0.02,
            }),
            unix_s: 1_000_300,
            model: Model {
                ram: Bytes::mib(1024),
                available: Bytes::mib(300),
                held: Bytes::mib(310),
                pool: Bytes::mib(100),
                saved: Bytes::mib(210),
                effective_ratio: Some(3.1),
                incompressible_share: Some(0.03),
                pages_in_per_s: 120.0,
                waiting_share: Some(0.013),
                ..Model::default()
            },
            machine: machine(),
            group_at_limit: None,
            guard: Some(GuardState { ended: 1, stops: 2, ..GuardState::default() }),
            prefetch: Some(PrefetchState {
                off: Some("the disk is fast".into()),
                ..PrefetchState::default()
            }),
            io: None,
            events: vec![Event {
                unix_s: 1_000_000,
                text: "Added zram2: zram1 is 86 % full.".into(),
                ..Event::default()
            }],
            ended: vec![Event {
                unix_s: 996_700,
                text: "Ended: process 4711 of user 1000 (1.2 GiB), because memory is short: all tasks waited 80 % of the last second, and 5.0 MiB is left.".into(),
                important: true,
                program: Some(Program { uid: 1000, name: Some("leak (leak.service)".into()) }),
            }],
        }
    }

    #[test]
    fn the_last_end_is_shown_with_the_name_that_the_reader_may_know_and_once() {
        let shown = |snapshot: Snapshot| text(&Status { snapshot, caches: Vec::new() });
        let line = |snapshot: Snapshot| {
            let text = shown(snapshot);
            text.lines().find(|line| line.starts_with("ended ")).map(str::to_owned)
        };
        assert!(
            line(busy())
                .unwrap()
                .contains("ago: \"leak (leak.service)\", process 4711 of user 1000 (1.2 GiB), because")
        );
        assert!(
            line(busy().for_reader(1001))
                .unwrap()
                .contains("ago: process 4711 of user 1000 (1.2 GiB), because")
        );
        assert_eq!(line(Snapshot { ended: Vec::new(), ..busy() }), None);
        let just_now = Snapshot { events: busy().ended, ..busy() };
        assert_eq!(shown(just_now.clone()).matches("process 4711").count(), 1);
        assert!(decided(&just_now).unwrap().contains("ago: \"leak (leak.service)\": Ended: process 4711"));
    }

    #[test]
    fn what_was_not_measured_is_not_shown_as_a_time() {
        let shown = |load_p50_ns| {
            let prediction = busy().prediction.map(|p| Prediction { load_p50_ns, ..p });
            predicted(&Snapshot { prediction, ..busy() }).unwrap()
        };
        assert!(
            shown(5_700).ends_with("a page-in takes 5.70 µs (p99 13.1 µs), now: not measured"),
            "{}",
            shown(5_700)
        );
        assert!(shown(0).ends_with("how long a page-in takes (p50, p99): not measured"), "{}", shown(0));
    }

    #[test]
    fn a_busy_machine_reads_well() {
        insta::assert_snapshot!(text(&Status { snapshot: busy(), caches: Vec::new() }));
        insta::assert_snapshot!(
            "without_a_verb",
            super::super::overview::text(&Status { snapshot: busy(), caches: Vec::new() })
        );
    }

    #[test]
    fn the_guard_beside_a_daemon_is_the_last_resort() {
        let state = GuardState { last_resort: Some("earlyoom runs".into()), ..GuardState::default() };
        assert!(guarded(&state).starts_with("the last resort: earlyoom runs; programs ended"));
        assert!(guarded(&GuardState::default()).starts_with("on; programs ended"));
    }

    #[test]
    fn a_source_that_misses_launches_is_shown_with_the_reason() {
        let mut snapshot = busy();
        let lines =
            |snapshot: &Snapshot| remedies(&Status { snapshot: snapshot.clone(), caches: Vec::new() });
        let source = "polls of /proc; not BPF: load it: Operation not permitted";
        snapshot.prefetch = Some(PrefetchState { source: source.into(), ..PrefetchState::default() });
        assert!(lines(&snapshot).contains(&format!("sees launches by {source}")), "{}", lines(&snapshot));
        snapshot.prefetch = Some(PrefetchState { source: "BPF".into(), ..PrefetchState::default() });
        assert!(!lines(&snapshot).contains("sees launches"));
    }

    #[test]
    fn an_untouched_machine_says_so() {
        let snapshot = Snapshot { backend: "none".into(), ..Snapshot::default() };
        let document = Status { snapshot, caches: Vec::new() };
        insta::assert_snapshot!(text(&document));
        insta::assert_snapshot!("untouched_without_a_verb", super::super::overview::text(&document));
    }
}

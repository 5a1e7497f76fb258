//! The report of all settings. Pure.

use eke_bench_core::{Environment, Results};
use eke_results::report::words::shown;
use eke_results::report::{Better, Metric, Report, Role, Variant};
use eke_results::rows::{Params, Rows, params};

use super::plan::{Setting, study};
use super::trial::{Chosen, Sampled, Transport, Trial};
use super::verdict::{RC4_GAIN, beside_the_study, less_cpu, standing};

/// Everything that went to its end.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Held {
    /// The settings.
    pub trials: Vec<(Setting, Trial)>,
    /// What was left out, and how a CPU was made.
    pub notes: Vec<String>,
}

const EKE: &str = "eke";
const BOTH_WAYS: &str = "throughput";
const TO_HERE: &str = "to here";
const TO_THERE: &str = "to there";
const CPU: &str = "CPU of the busier end";
const FRAMES: &str = "X session";
const DIRECT: &str = "without ssh";
const COMPRESSED: &str = "eke's, compressed";
const SECONDS: &str = "eke link takes";
const MOVED: &str = "eke link moves";

/// The report.
pub fn report(environment: &Environment<'_>, results: Results<Setting, Trial>) -> Report {
    let held = Held { trials: results.measured, notes: results.notes };
    let mut notes = verdicts(&held);
    notes.extend(about());
    notes.extend(held.notes.iter().cloned());
    Report {
        variants: variants(&held),
        metrics: metrics(),
        rows: rows(&held),
        notes,
        ..environment.report("link")
    }
}

fn name(sampled: &Sampled) -> String {
    if sampled.suite == study() {
        format!("{}, the study's", sampled.suite)
    } else {
        sampled.suite.to_string()
    }
}

fn at(setting: &Setting) -> Params {
    params([("link", setting.link.name().into()), ("cpu", setting.cpu.name().into())])
}

fn rows(held: &Held) -> Vec<eke_results::report::Row> {
    let mut rows = Rows::default();
    for (setting, trial) in &held.trials {
        let at = at(setting);
        for sampled in &trial.sampled {
            add(&mut rows, &name(sampled), &at, sampled);
        }
        let choice = trial.chosen.last().and_then(|c| trial.sampled.iter().find(|s| s.suite == c.suite));
        if let Some(choice) = choice {
            add(&mut rows, EKE, &at, choice);
        }
        add_frames(&mut rows, &at, trial);
        rows.add(EKE, &at, SECONDS, "s", trial.chosen.iter().map(|c| c.seconds));
        rows.add(EKE, &at, MOVED, "MB", trial.chosen.iter().map(|c| c.bytes as f64 / 1e6));
    }
    rows.done()
}

fn add_frames(rows: &mut Rows, at: &Params, trial: &Trial) {
    for (transport, frames) in &trial.frames {
        let suite = match transport {
            Transport::Suite(suite) => suite,
            Transport::Compressed => {
                rows.add(COMPRESSED, at, FRAMES, "frames/s", [*frames]);
                continue;
            }
            Transport::Direct => {
                rows.add(DIRECT, at, FRAMES, "frames/s", [*frames]);
                continue;
            }
        };
        let known = trial.sampled.iter().find(|m| m.suite == *suite);
        rows.add(&known.map_or_else(|| suite.to_string(), name), at, FRAMES, "frames/s", [*frames]);
        if trial.chosen.last().is_some_and(|c| c.suite == *suite) {
            rows.add(EKE, at, FRAMES, "frames/s", [*frames]);
        }
    }
}

fn add(rows: &mut Rows, variant: &str, at: &Params, sampled: &Sampled) {
    rows.add(variant, at, BOTH_WAYS, "MB/s", sampled.rates());
    rows.add(variant, at, TO_HERE, "MB/s", sampled.to_here.iter().copied());
    rows.add(variant, at, TO_THERE, "MB/s", sampled.to_there.iter().copied());
    rows.add(variant, at, CPU, "ms/MB", sampled.bound_per_mb.iter().map(|s| 1e3 * s));
}

fn metrics() -> Vec<Metric> {
    let metric = |name: &str, better, about: &str| Metric { name: name.into(), better, about: about.into() };
    vec![
        metric(BOTH_WAYS, Better::More, "equal amounts in both directions: the harmonic mean of both rates"),
        metric(TO_HERE, Better::More, "from the server to the thin client"),
        metric(TO_THERE, Better::More, "from the thin client to the server"),
        metric(CPU, Better::Less, "of ssh or sshd, whichever needs more; background load hardly changes it"),
        metric(
            FRAMES,
            Better::More,
            "complete frames of 640 x 480 through ssh -Y, from the server to the thin client's screen",
        ),
        metric(SECONDS, Better::Less, "from the first answer on; at most 20"),
        metric(MOVED, Better::Less, "both directions together; at most 200"),
    ]
}

fn variants(held: &Held) -> Vec<Variant> {
    let mut variants: Vec<Variant> = Vec::new();
    for sampled in held.trials.iter().flat_map(|(_, t)| &t.sampled) {
        let name = name(sampled);
        if variants.iter().all(|v| v.name != name) {
            let role = if sampled.is_allowed { Role::Peer } else { Role::Baseline };
            variants.push(Variant { name, role, set_up: String::new() });
        }
    }
    if held.trials.iter().any(|(_, t)| !t.frames.is_empty()) {
        let set_up = "X over plain TCP, which eke never chooses: shows the cost of encryption".to_owned();
        variants.push(Variant { name: DIRECT.into(), role: Role::Baseline, set_up });
        let set_up =
            "eke's cipher with ssh's compression (zlib): the picture compresses to two thirds".to_owned();
        variants.push(Variant { name: COMPRESSED.into(), role: Role::Peer, set_up });
    }
    let set_up =
        "the choice of `eke link` in this setting, with that cipher's exhaustive measurements".to_owned();
    variants.push(Variant { name: EKE.into(), role: Role::Ours, set_up });
    variants
}

/// The verdict of each decision, and the total.
fn verdicts(held: &Held) -> Vec<String> {
    let each = held.trials.iter().flat_map(|(setting, trial)| {
        let mut lines: Vec<String> = Vec::new();
        for chosen in &trial.chosen {
            let line = verdict(setting, trial, chosen);
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines
    });
    let mut lines: Vec<String> = each.collect();
    lines.extend(held.trials.iter().filter_map(|(setting, trial)| {
        let why = trial.no_frames.as_ref()?;
        Some(format!("{}, {}: no X session: {why}.", setting.link.name(), setting.cpu.name()))
    }));
    let all = held.trials.iter().flat_map(|(_, t)| t.chosen.iter().map(move |c| standing(t, c).is_good()));
    let (decisions, good) = (all.clone().count(), all.filter(|good| *good).count());
    lines.push(format!(
        "In {good} of {decisions} decisions eke's choice is among the best: the best allowed cipher itself, or at least 95 % of its rate by the lower end of the ratio's 95 % interval."
    ));
    lines
}

fn verdict(setting: &Setting, trial: &Trial, chosen: &Chosen) -> String {
    let beside = beside_the_study(trial, chosen).map_or(String::new(), |times| {
        let rc4 = if times >= RC4_GAIN { ", more than RC4's 1.5 times" } else { "" };
        format!(" {} times the study's AES128-CTR{rc4}.", shown(times))
    });
    let cpu = less_cpu(trial, chosen)
        .map_or(String::new(), |times| format!(" It needs {} times less CPU.", shown(times)));
    format!(
        "{}, {}: eke chose {}, limit {}: {}.{beside}{cpu}",
        setting.link.name(),
        setting.cpu.name(),
        chosen.suite,
        chosen.limit,
        standing(trial, chosen).text()
    )
}

fn about() -> Vec<String> {
    [
        "The thin client (ssh) has the slower CPU, the server (sshd) this machine's. Both run on the same processors, so they compete on \
         the unlimited link.",
        "The CPU without AES instructions hides them from OpenSSL only (OPENSSL_ia32cap); UMAC and the rest of ssh still see them. \
         Atom-like is a quota of a modern CPU, not an in-order CPU.",
        "All allowed ciphers were measured round by round over connections that were open together; each round began with another cipher.",
    ]
    .map(str::to_owned)
    .to_vec()
}

//! The measurements and the plan as text.

use std::fmt::Write as _;

use eke_model::step::{Plan, PlannedStep, Step};
use eke_model::text::one_line;
use eke_present::table::Table;
use eke_present::terminal;
use eke_present::words::time;
use eke_swap::decide::algorithm::AlgorithmVerdict;
use eke_swap::decide::present;
use eke_swap::facts::Facts;
use eke_swap::measure::measurements::{AlgorithmMeasurement, DiskLatency, Measured};

use crate::documents::{Plan as Document, Switch};

/// Everything of a plan.
pub fn text(document: &Document) -> String {
    let mut out = sample(document);
    out += &table(document);
    out += &disks(&document.measured);
    let _ = writeln!(out, "\n{}", wrapped(&format!("{}.", document.decision.backend_reason.text), "", ""));
    out += &steps(&document.decision.plan, &document.facts);
    out += &prediction(&document.decision.plan);
    if document.facts.elsewhere().is_none() {
        out += &switch("Prefetch", "enabled = \"{}\" under [prefetch]", &document.prefetch);
        out += &switch("The governor of writers", "govern = \"{}\" under [io]", &document.governor);
    }
    out
}

/// `key` has `{}` for the value.
fn switch(name: &str, key: &str, of: &Switch) -> String {
    let (is, other) = if of.is_on { ("on", "off") } else { ("off", "on") };
    let how = if of.reason.text == Switch::BY_OPTION {
        "`sudo eke down`, then `sudo eke up` without it".to_owned()
    } else {
        format!("{} in /etc/eke/eke.toml, then `sudo eke up`", key.replace("{}", other))
    };
    let text = format!("{name} is {is}: {}. To turn it {other}: {how}.", of.reason.text);
    format!("{}\n\n", wrapped(&text, "", ""))
}

fn sample(document: &Document) -> String {
    let m = &document.measured;
    let p = &m.pages;
    let share = |n: u64| 100.0 * n as f64 / p.sampled.max(1) as f64;
    let kind = if m.estimated { "Estimated in user space" } else { "Measured" };
    let kind = if m.at_boot { format!("{kind} at boot") } else { kind.to_owned() };
    let kind = document.stored_s.map_or(kind.clone(), |age_s| stored(&kind, m, age_s));
    let of = match p.processes {
        0 if p.sampled > 0 => "eke's own program, because no process may be read,".to_owned(),
        n => format!("{n} processes of this machine"),
    };
    format!(
        "{kind} on {} pages of {of} in {:.1} s ({:.0} % zero, {:.0} % same-filled):\n\n",
        p.sampled,
        m.took_ms as f64 / 1e3,
        share(p.zero),
        share(p.same_filled)
    )
}

/// Nothing is measured at boot: few programs run then.
fn stored(kind: &str, measured: &Measured, age_s: u64) -> String {
    let when = match (measured.unix_s, age_s) {
        // a machine without a clock of its own may boot in the past
        (0, _) | (_, 0) => "an earlier time".to_owned(),
        _ => format!("{} ago", time(age_s)),
    };
    format!("These are stored numbers of {when}, on Linux {}. {kind}", measured.kernel)
}

fn table(document: &Document) -> String {
    if document.measured.algorithms.is_empty() {
        return String::new();
    }
    let mut table =
        Table::new(&["algorithm", "ratio", "low", "high", "hard", "store", "p99", "load", "p99", "verdict"])
            .ending_in_words();
    let verdicts = document.decision.choice.as_ref().map(|c| c.verdicts.as_slice()).unwrap_or_default();
    for (i, row) in document.measured.algorithms.iter().enumerate() {
        table.row(cells(row, verdicts.get(i)));
    }
    table.to_string()
}

fn cells(row: &AlgorithmMeasurement, verdict: Option<&AlgorithmVerdict>) -> Vec<String> {
    let name = format!("{}{}", row.label(), if row.estimated { " *" } else { "" });
    let verdict = verdict.map_or(String::new(), verdict_words);
    if let Some(why) = &row.unusable {
        let dashes = std::iter::repeat_n("-".to_owned(), 8);
        return std::iter::once(name).chain(dashes).chain([why.clone()]).collect();
    }
    vec![
        name,
        format!("{:.2}", row.ratio),
        format!("{:.2}", row.ratio_low),
        format!("{:.2}", row.ratio_high),
        format!("{:.1} %", 100.0 * row.incompressible_share),
        row.store_p50.to_string(),
        row.store_p99.to_string(),
        row.load_p50.to_string(),
        row.load_p99.to_string(),
        verdict,
    ]
}

fn verdict_words(verdict: &AlgorithmVerdict) -> String {
    match verdict {
        AlgorithmVerdict::Chosen => "chosen".into(),
        AlgorithmVerdict::FreesLess => "frees less".into(),
        AlgorithmVerdict::TooSlowToLoad => "loads too slowly".into(),
        AlgorithmVerdict::TooMuchCpu { cpu_percent } => format!("{cpu_percent:.0} % CPU"),
        AlgorithmVerdict::NotOffered => "not offered".into(),
        AlgorithmVerdict::Unmeasured => "not measured".into(),
        AlgorithmVerdict::NotRequested => "not asked for".into(),
    }
}

fn disks(m: &Measured) -> String {
    let mut out = String::new();
    if m.algorithms.iter().any(|a| a.estimated) {
        out += "  * estimated in user space\n";
    }
    for (what, disk) in [("file read", &m.file_read), ("swap disk", &m.swap_disk)] {
        if let Some(d) = disk {
            let _ = writeln!(out, "  {}", disk_line(what, d));
        }
    }
    for missing in &m.unmeasured {
        let missing = format!("not measured: {}: {}", missing.what, one_line(&missing.why));
        let _ = writeln!(out, "{}", wrapped(&missing, "  ", "    "));
    }
    out
}

fn disk_line(what: &str, d: &DiskLatency) -> String {
    let past = if d.direct { "" } else { ", through the page cache" };
    format!("{what}: {} (p99 {}), {} random reads of {}{past}", d.p50, d.p99, d.reads, d.what)
}

fn steps(plan: &Plan, facts: &Facts) -> String {
    let mut out = String::new();
    for (i, group) in grouped(&plan.steps).into_iter().enumerate() {
        let first = group[0];
        let others = match group.len() {
            1 => String::new(),
            2 => ", and of 1 more group".to_owned(),
            n => format!(", and of {} more groups", n - 1),
        };
        let now = present::value(facts, &first.step).map_or(String::new(), |now| format!(" (now {now})"));
        let _ = writeln!(out, "\n{:>3}. {}{now}{others}", i + 1, first.step);
        let _ = writeln!(out, "{}", wrapped(&first.reason.text, "     ", "     "));
    }
    out
}

/// Groups steps that differ only in their target: a machine can have hundreds of control groups.
fn grouped(steps: &[PlannedStep]) -> Vec<Vec<&PlannedStep>> {
    let mut groups: Vec<Vec<&PlannedStep>> = Vec::new();
    for step in steps {
        match groups.last_mut() {
            Some(group) if alike(&group[0].step, &step.step) => group.push(step),
            _ => groups.push(vec![step]),
        }
    }
    groups
}

fn alike(a: &Step, b: &Step) -> bool {
    match (a, b) {
        (Step::Set { knob: a, target: t, value: v }, Step::Set { knob: b, target: u, value: w }) => {
            a == b && v == w && !t.is_empty() && !u.is_empty()
        }
        _ => false,
    }
}

fn prediction(plan: &Plan) -> String {
    let mut out = String::new();
    if let Some(p) = &plan.prediction {
        let (p50, p99) = (eke_model::units::Nanos(p.load_p50_ns), eke_model::units::Nanos(p.load_p99_ns));
        let _ = writeln!(
            out,
            "\nPrediction: this machine will hold about {:.1} times its RAM; a page-in takes {p50}, p99 {p99}.",
            p.holds_times_ram
        );
    }
    for advice in &plan.advice {
        let _ = writeln!(out, "{}", wrapped(&format!("{}.", advice.text), "Note: ", "      "));
    }
    out + "\n"
}

/// The most columns of wrapped text.
const COLUMNS: usize = 100;

fn wrapped(text: &str, first: &str, rest: &str) -> String {
    let columns = terminal::columns().map_or(COLUMNS, |columns| columns.clamp(40, COLUMNS));
    textwrap::fill(text, textwrap::Options::new(columns).initial_indent(first).subsequent_indent(rest))
}

#[cfg(test)]
mod tests {
    use eke_model::step::Reason;

    use super::*;

    #[test]
    fn a_switch_says_why_and_how_to_undo_it() {
        let key = "enabled = \"{}\" under [prefetch]";
        let of =
            |is_on| switch("Prefetch", key, &Switch { is_on, reason: Reason::new("a launch waits 2 s") });
        let words = |is_on| of(is_on).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words(true).starts_with("Prefetch is on: a launch waits 2 s. To turn it off: enabled = \"off\"")
        );
        assert!(
            words(false).starts_with("Prefetch is off: a launch waits 2 s. To turn it on: enabled = \"on\"")
        );
    }

    #[test]
    fn a_step_shows_the_value_that_it_replaces() {
        let mut plan = Plan::default();
        plan.push(Step::set("vm.swappiness", 190), Reason::new("a test"));
        plan.push(Step::set("vm.dirty_bytes", 9), Reason::new("a test"));
        let facts = Facts { swappiness: Some(1), ..Facts::default() };
        let shown = steps(&plan, &facts);
        assert!(shown.contains("1. set vm.swappiness to 190 (now 1)\n"), "{shown}");
        assert!(shown.contains("2. set vm.dirty_bytes to 9\n"), "{shown}");
    }

    #[test]
    fn what_an_option_turned_on_no_file_turns_off() {
        let text =
            switch("The governor", "govern", &Switch { is_on: true, reason: Reason::new(Switch::BY_OPTION) });
        assert!(
            text.contains("by --govern-io.") && text.contains("eke down") && !text.contains("toml"),
            "{text}"
        );
    }

    #[test]
    fn stored_numbers_are_not_passed_off_as_new_ones() {
        let stored = |unix_s, age_s| {
            let measured = Measured { kernel: "6.12.3".into(), unix_s, ..Measured::default() };
            stored("Measured", &measured, age_s)
        };
        let old = stored(1_000_000, 3 * 86_400);
        assert_eq!(old, "These are stored numbers of 3 days ago, on Linux 6.12.3. Measured");
        let unknown = "These are stored numbers of an earlier time, on Linux 6.12.3. Measured";
        assert_eq!(stored(0, 1_700_000_000), unknown, "not dated");
        assert_eq!(stored(1_700_000_000, 0), unknown, "the clock went backwards");
    }
}

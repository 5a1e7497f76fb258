//! The results as a page of the documents. Pure.

use std::fmt::Write;

use crate::machines::Machine;
use crate::results::{Results, Row};
use crate::steps::{Ending, Outcome};

/// `docs/field.md`.
#[must_use]
pub fn page(machines: &[Machine], results: &Results) -> String {
    let mut page = String::from(INTRODUCTION);
    for list in lists(machines) {
        let members: Vec<&Machine> = machines.iter().filter(|m| m.steps == list).collect();
        let rows: Vec<&Row> = members.iter().filter_map(|m| results.of(&m.name)).collect();
        if !rows.is_empty() {
            table(&mut page, &rows);
        }
    }
    page += "\n## Machines\n\n| machine | kernel | package | memory | time | what it is for |\n| --- | --- | --- | --- | --- | --- |\n";
    for machine in machines {
        let row = results.of(&machine.name);
        let (kernel, package) = row.map_or(("not run", String::new()), |row| {
            (row.kernel.as_str(), format!("{} {}", row.package, row.commit).trim_end().to_owned())
        });
        let time = row.map_or(String::new(), |row| format!("{:.0} min", row.seconds() / 60.0));
        let _ = writeln!(
            page,
            "| {} | {kernel} | {package} | {} MB | {time} | {} |",
            machine.name, machine.memory_mib, machine.purpose
        );
    }
    times(&mut page, machines, results);
    restarts(&mut page, machines, results);
    measured(&mut page, machines, results);
    reasons(&mut page, machines, results);
    page
}

const INTRODUCTION: &str = "\
# The fleet

`make field` installs the package on emulated Debian machines, each with its real init, uses all of it, upgrades it and removes it, and writes this page
from [`field.json`](field.json). The machines are data (`experiments/field/machines.toml`), and so are the steps (`steps.toml` beside it).
`make field FIELD=debian13,arm64-16k` runs some of them; a finished machine is not run again without `AGAIN=1`. Two machines run at a time, on more
than three CPUs one for each but one, or `AT_ONCE=4`. Output and consoles are in `target/field`.
CI runs the quickest, `container`, with a package of the programs that the other tests use.

The emulation has one slow CPU (QEMU 10, TCG): times are of use only beside other times of the same machine. QEMU 7.2 once ended guests of Linux 6.12
that had several CPUs, while eke traced page faults. Tried again with two CPUs, under load for 400 s each, no guest ended: not without tracing, not with the
tracepoint `mm_filemap_fault` switched on and off, and not while `eke-prefetch` traced. So what ended them is not known. A guest of Linux 6.1 with two CPUs
locked up in modprobe, at its boot and before eke ran.

*As before*, after the purge, means the same settings, swap, mounts, modules, units and packages, and the same files: those of /etc and /boot by their
content, those of /usr, /opt, /srv, /root, /home and /var/lib by size, mode and time, without what dpkg, apt and systemd keep in /var/lib.

A row is of the commit that it names, and without one it is older. Steps that it lacks came later. Memory and purpose are those of today's description.

✓ as expected · ✗ failed · – not possible there · … not run, since an earlier step failed
";

/// How many machines run at a time at least.
pub const AT_ONCE: usize = 2;

/// How long a whole run takes, once its images and packages are made.
fn times(page: &mut String, machines: &[Machine], results: &Results) {
    let each: Vec<f64> = machines.iter().filter_map(|m| results.of(&m.name)).map(Row::seconds).collect();
    let hours = |seconds: f64| {
        format!("{} h {:02} min", (seconds / 3600.0).floor(), (seconds % 3600.0 / 60.0).floor())
    };
    let _ = writeln!(
        page,
        "\nBy these times a whole run takes {}, and {} with one machine after another. Times of rows that ran beside others include that.",
        hours(makespan(&each, AT_ONCE)),
        hours(makespan(&each, 1))
    );
}

/// When the last of these tasks ends, if each in order begins as soon as one of `at_once` places is free. In seconds.
fn makespan(tasks: &[f64], at_once: usize) -> f64 {
    let mut free = vec![0.0_f64; at_once];
    for seconds in tasks {
        free.sort_by(f64::total_cmp);
        if let Some(first) = free.first_mut() {
            *first += seconds;
        }
    }
    free.into_iter().fold(0.0, f64::max)
}

fn lists(machines: &[Machine]) -> Vec<&str> {
    let mut lists = Vec::new();
    for machine in machines {
        if !lists.contains(&machine.steps.as_str()) {
            lists.push(machine.steps.as_str());
        }
    }
    lists
}

fn table(page: &mut String, rows: &[&Row]) {
    let mut steps: Vec<&str> = Vec::new();
    for outcome in rows.iter().flat_map(|row| &row.steps) {
        if !steps.contains(&outcome.step.as_str()) {
            steps.push(&outcome.step);
        }
    }
    let names: Vec<&str> = rows.iter().map(|row| row.machine.as_str()).collect();
    let _ = writeln!(page, "\n| step | {} |\n| --- |{}", names.join(" | "), " --- |".repeat(names.len()));
    for step in steps {
        let sign = |row: &&Row| row.steps.iter().find(|s| s.step == step).map_or(" ", sign);
        let _ = writeln!(page, "| {step} | {} |", rows.iter().map(sign).collect::<Vec<_>>().join(" | "));
    }
}

const fn sign(outcome: &Outcome) -> &'static str {
    match outcome.ending {
        Ending::Ok => "✓",
        Ending::Failed => "✗",
        Ending::NotPossible => "–",
        Ending::Skipped => "…",
    }
}

/// The restarts, in order: the step's name, and what was in use.
const RESTARTS: [(&str, &str); 5] = [
    ("before", "without eke"),
    ("reboot: applied", "swap"),
    ("reboot: all on", "all remedies"),
    ("after that", "a mount in use"),
    ("reboot: as before", "removed"),
];

/// What eke costs when a machine stops and starts.
fn restarts(page: &mut String, machines: &[Machine], results: &Results) {
    let value = |row: &Row, step: &str, name: &str| {
        let outcome = row.steps.iter().find(|s| s.step == step);
        outcome.and_then(|s| s.values.get(name)).map_or(String::new(), |value| format!("{value:.0}"))
    };
    let states = RESTARTS.map(|(_, state)| state).join(" | ");
    let _ =
        writeln!(page, "{RESTARTS_SAY}\n| machine | {states} | start without eke | with eke | eke.service |");
    let _ = writeln!(page, "| --- |{}", " --- |".repeat(RESTARTS.len() + 3));
    let restarts = |row: &Row| RESTARTS.map(|(step, _)| value(row, step, "restart_s"));
    let rows = machines.iter().filter_map(|m| results.of(&m.name));
    for (row, restarts) in
        rows.map(|row| (row, restarts(row))).filter(|(_, restarts)| !restarts.concat().is_empty())
    {
        let starts =
            [("before", "userspace_s"), ("reboot: applied", "userspace_s"), ("reboot: applied", "unit_s")];
        let starts = starts.map(|(step, name)| value(row, step, name));
        let _ = writeln!(page, "| {} | {} | {} |", row.machine, restarts.join(" | "), starts.join(" | "));
    }
}

const RESTARTS_SAY: &str = "\
\n## Restarts

Seconds from `reboot` to a shell in the restarted machine, by what was in use; and what systemd says: from its own start until all jobs are done,
and of that eke.service, for which no other unit waits. The host does other things meanwhile: the columns without eke (the first and the fifth) show how much
that changes.
";

fn measured(page: &mut String, machines: &[Machine], results: &Results) {
    *page += "\n## Measured\n\n| machine | step | values |\n| --- | --- | --- |\n";
    for (machine, outcome) in outcomes(machines, results) {
        let values: Vec<String> =
            outcome.values.iter().map(|(name, value)| format!("{name} {value}")).collect();
        if !values.is_empty() {
            let _ = writeln!(page, "| {machine} | {} | {} |", outcome.step, values.join(", "));
        }
    }
}

fn reasons(page: &mut String, machines: &[Machine], results: &Results) {
    *page += "\n## Reasons\n\n";
    let start = page.len();
    for (machine, outcome) in outcomes(machines, results) {
        if matches!(outcome.ending, Ending::Failed | Ending::NotPossible) {
            let _ = writeln!(
                page,
                "- {} {machine}, {}: {}",
                sign(outcome),
                outcome.step,
                escaped(&outcome.reason)
            );
        }
    }
    if page.len() == start {
        *page += "Every step went as expected.\n";
    }
}

fn outcomes<'a>(
    machines: &'a [Machine],
    results: &'a Results,
) -> impl Iterator<Item = (&'a str, &'a Outcome)> {
    let rows = machines.iter().filter_map(|machine| results.of(&machine.name));
    rows.flat_map(|row| row.steps.iter().map(|step| (row.machine.as_str(), step)))
}

/// A machine's own words, which must not become markup.
fn escaped(text: &str) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("`{}`", one_line.replace('`', "'").replace('|', "¦"))
}

#[cfg(test)]
mod tests {
    use super::{makespan, page};
    use crate::results::{Results, Row};
    use crate::steps::judge;

    #[test]
    fn the_next_machine_takes_the_first_free_place() {
        assert_eq!(makespan(&[3.0, 1.0, 1.0, 2.0], 2), 4.0);
        assert_eq!(makespan(&[3.0, 1.0, 1.0, 2.0], 1), 7.0);
    }

    #[test]
    fn the_stored_page_is_that_of_the_stored_results() {
        let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let machines = crate::machines::parse(include_str!("../machines.toml")).unwrap();
        let results = Results::read(&docs.join("field.json")).unwrap();
        let stored = std::fs::read_to_string(docs.join("field.md")).unwrap();
        assert!(page(&machines, &results) == stored, "docs/field.md is older: eke-field --table");
    }

    #[test]
    fn each_step_is_a_line_and_each_machine_a_column() {
        let machines = crate::machines::parse(include_str!("../machines.toml")).unwrap();
        let steps = vec![
            judge("up", 0, "@value boot_s 2.5\n", 1.0),
            judge("before", 0, "@value restart_s 46.6\n@value userspace_s 22.1\n", 1.0),
            judge("cache", 77, "no | `FUSE`\n", 1.0),
            judge("down", 1, "left\n", 1.0),
        ];
        let row = Row {
            machine: "debian13".into(),
            kernel: "6.12 x86_64".into(),
            package: "1".into(),
            commit: "abc".into(),
            finished: true,
            steps,
        };
        let page = page(&machines, &Results { machines: vec![row] });
        assert!(
            page.contains("| step | debian13 |\n| --- | --- |\n| up | ✓ |\n| before | ✓ |\n| cache | – |\n| down | ✗ |\n"),
            "{page}"
        );
        assert!(page.contains("| debian13 | up | boot_s 2.5 |"), "{page}");
        assert!(page.contains("| debian13 | 47 |  |  |  |  | 22 |  |  |"), "{page}");
        assert!(page.contains("- – debian13, cache: `no ¦ 'FUSE'`\n- ✗ debian13, down: `left`"), "{page}");
    }
}

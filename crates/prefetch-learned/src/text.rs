//! Learned programs as text.

use std::fmt::Write as _;
use std::time::Duration;

use eke_model::text::one_line;
use eke_model::units::{Bytes, Nanos};
use eke_prefetch_model::choose::{ChoiceOutcome, Limit};
use eke_prefetch_model::program::shown;
use eke_present::table::Table;

use crate::documents::{Boot, Decision, Explain, FileKind, List, Missing, MissingFile, Program, Show};

/// The number of files shown without `--all`.
const FIRST: usize = 30;
/// The longest path in a table; of a longer one its end is shown.
const LONGEST: usize = 90;

/// `eke prefetch list`; `now_s` in seconds since 1970.
pub fn list(document: &List, now_s: i64) -> String {
    let store = shown(&document.store);
    let Some(bytes) = document.bytes else {
        return format!(
            "Nothing has been learned yet: {store} does not exist.\nPrograms are learned when they start while prefetch runs; `eke plan` says whether it does, and `enabled = \"on\"` under [prefetch] in /etc/eke/eke.toml sets it.\n"
        );
    };
    if document.programs.is_empty() {
        return format!("No program has been learned yet ({store}).\n");
    }
    let header = ["program", "launches", "learned", "weight", "last", "coldest launch", "read"];
    let mut table = Table::new(&header);
    for program in &document.programs {
        table.row([
            end(&name(program)),
            program.launches.to_string(),
            program.learned.to_string(),
            format!("{:.1}", program.weight),
            ago(program.last_seen_s, now_s),
            time(program.coldest_took_ms),
            program.coldest.to_string(),
        ]);
    }
    let count = document.programs.len();
    format!("{table}\n{count} {} in {bytes}: {store}\n", if count == 1 { "program" } else { "programs" })
}

/// `eke prefetch show`.
pub fn program(document: &Show, now_s: i64, all: bool) -> String {
    let p = &document.program;
    let mut out = format!("{}\n", name(p));
    let mut row = |name: &str, text: String| {
        let _ = writeln!(out, "  {name:<10} {text}");
    };
    row(
        "launches",
        format!("{}, {} of them learned, the last {}", p.launches, p.learned, before(p.last_seen_s, now_s)),
    );
    row("last", format!("took {} and read {}", time(p.took_ms), p.cold));
    row("coldest", format!("took {} and read {}", time(p.coldest_took_ms), p.coldest));
    row("files", format!("{} of {} files, directories and devices", document.bytes, document.files.len()));
    if document.files.is_empty() {
        return out;
    }
    let mut table =
        Table::new(&["", "pages", "pieces", "launches", "in order of first use"]).ending_in_words();
    let most = if all { document.files.len() } else { FIRST };
    for file in document.files.iter().take(most) {
        table.row([
            kind(file.kind).to_owned(),
            file.bytes.to_string(),
            file.pieces.to_string(),
            format!("{:.0} %", 100.0 * file.weight),
            end(&shown(&file.path)),
        ]);
    }
    let more = document.files.len().saturating_sub(most);
    let rest = if more > 0 { format!("  and {more} more; --all shows them\n") } else { String::new() };
    format!("{out}\n{table}{rest}")
}

fn kind(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Directory => "directory",
        FileKind::Device => "metadata",
    }
}

fn name(program: &Program) -> String {
    match &program.script {
        None => shown(&program.exe),
        Some(script) => format!("{} {}", shown(&program.exe), shown(script)),
    }
}

fn end(text: &str) -> String {
    let long = text.chars().count();
    if long <= LONGEST {
        text.to_owned()
    } else {
        format!("…{}", text.chars().skip(long - LONGEST + 1).collect::<String>())
    }
}

fn time(ms: u64) -> String {
    Nanos::from(Duration::from_millis(ms)).to_string()
}

/// The time since `at_s`; zero if that is in the future.
fn ago(at_s: i64, now_s: i64) -> String {
    match now_s.saturating_sub(at_s).max(0) {
        s if s < 120 => format!("{s} s"),
        s if s < 2 * 3600 => format!("{} min", s / 60),
        s if s < 48 * 3600 => format!("{} h", s / 3600),
        s => format!("{} days", s / 86_400),
    }
}

fn before(at_s: i64, now_s: i64) -> String {
    format!("{} ago", ago(at_s, now_s))
}

/// `eke prefetch explain`.
pub fn explain(document: &Explain, now_s: i64) -> String {
    if document.decisions.is_empty() {
        return "There is no decision yet: eke-prefetch has not run, all starts found their files in memory, or the program was forgotten. The last 4000 decisions are kept.\n".to_owned();
    }
    document.decisions.iter().map(|decision| decision_of(decision, &before(decision.at_s, now_s))).collect()
}

/// `eke prefetch boot`.
pub fn boot(document: &Boot, now_s: i64) -> String {
    let Boot { booted_s, within_s, chosen, decisions } = document;
    let of_boot =
        format!("in the first {} minutes after the boot, {}", within_s / 60, before(*booted_s, now_s));
    if decisions.is_empty() {
        return format!(
            "There is no decision {of_boot}: eke-prefetch did not run, all starts found their files in memory, or nothing is learned yet. The last 4000 decisions are kept.\n"
        );
    }
    let read = decisions.iter().filter(|d| d.chosen).count();
    let after = |d: &Decision| match d.at_s.saturating_sub(*booted_s) {
        after_s @ 0.. => format!("{after_s} s after it"),
        _ => "before the clock was set".to_owned(),
    };
    let each: String = decisions.iter().map(|d| decision_of(d, &after(d))).collect();
    let count = decisions.len();
    format!(
        "Decisions {of_boot}: {count}. In {read} of them at most {chosen} were chosen to be read.\n{each}"
    )
}

/// A decision at the time `when`.
fn decision_of(d: &Decision, when: &str) -> String {
    let what = match d.occasion.as_str() {
        "exec" => "was started".to_owned(),
        "session" => format!("may follow a log-in ({:.0} %)", 100.0 * d.probability),
        _ => format!("was expected ({:.0} %)", 100.0 * d.probability),
    };
    let after = match (d.used, d.wasted) {
        (Some(Bytes(0)), Some(_)) => "; it did not start in time".to_owned(),
        (Some(_), Some(_)) => "; it started in time".to_owned(),
        _ => String::new(),
    };
    let program = one_line(&d.program);
    format!("{when}: {program} {what}\n  {}{after}\n", d.why)
}

/// `eke prefetch explain --missing`.
pub fn missing(document: &Missing, now_s: i64) -> String {
    let Missing { read, missing, known, in_files, .. } = document;
    let start = format!("{}, {}", one_line(&document.program), before(document.at_s, now_s));
    let took = time(document.took_ms);
    if document.files.is_empty() {
        return format!(
            "{start}: eke had read {read} for this start, which read nothing itself, and took {took}.\n"
        );
    }
    let new = Bytes(missing.0.saturating_sub(known.0));
    let mut table = Table::new(&["", "read itself", "known", "pages of 4 KiB", ""]).ending_in_words();
    for file in &document.files {
        table.row([
            kind(file.kind).to_owned(),
            file.missing.to_string(),
            file.known.to_string(),
            pages(file),
            end(&shown(&file.path)),
        ]);
    }
    let more = in_files.saturating_sub(document.files.len());
    let rest = if more > 0 { format!("  and less of {more} more\n") } else { String::new() };
    format!(
        "{start}: eke had read {read} for this start. It still read {missing} of {in_files} files itself, and took {took}.\n  \
         {known} were known from earlier starts: eke did not read them, read them too late, or they were evicted before.\n  \
         {new} are pages that no earlier start had used.\n\n{table}{rest}"
    )
}

/// The first runs of its pages.
fn pages(file: &MissingFile) -> String {
    const SHOWN: usize = 4;
    let one = |[first, end]: &[u64; 2]| {
        if *end == first + 1 { first.to_string() } else { format!("{first}-{}", end.saturating_sub(1)) }
    };
    let runs: Vec<String> = file.pages.iter().take(SHOWN).map(one).collect();
    runs.join(" ") + if file.pages.len() > SHOWN { " …" } else { "" }
}

/// The verdict on a program's files as a sentence.
pub fn why(verdict: &ChoiceOutcome, limit: Option<&Limit>) -> String {
    if let Some(limit) = limit {
        return format!("not read: {}", no_budget(limit));
    }
    match *verdict {
        ChoiceOutcome::Chosen { bytes, of_bytes, saved_s, of_s } => format!(
            "up to {} of its {} were to be read, which saves the launch at most {} of {}",
            Bytes(bytes),
            Bytes(of_bytes),
            seconds(saved_s),
            seconds(of_s)
        ),
        ChoiceOutcome::AlreadyResident => "not read: all of it is in memory".to_owned(),
        ChoiceOutcome::SmallGain { cold_s, took_s: Some(took_s), least_s } => format!(
            "not read: reading its usual files takes {} on this disk, and the launch takes {}; prefetching starts at {}",
            seconds(cold_s),
            seconds(took_s),
            seconds(least_s)
        ),
        ChoiceOutcome::SmallGain { cold_s, took_s: None, least_s } => format!(
            "not read: reading its usual files takes {} on this disk; prefetching starts at {}",
            seconds(cold_s),
            seconds(least_s)
        ),
        ChoiceOutcome::CostsCpu { cold_s, cpu_s } => format!(
            "not read: reading its usual files takes {} on this disk, and eke would take {} of CPU time from the launch",
            seconds(cold_s),
            seconds(cpu_s)
        ),
        ChoiceOutcome::LeftAlone => {
            "not read: eke leaves some starts alone to measure what the others gain (control_percent)"
                .to_owned()
        }
        ChoiceOutcome::Improbable { probability, least } if probability >= least => {
            "not read: what it reads differs from start to start".to_owned()
        }
        ChoiceOutcome::Improbable { probability, least } => format!(
            "not read: too improbable, {:.1} % of at least {:.1} %",
            100.0 * probability,
            100.0 * least
        ),
        ChoiceOutcome::Shared { bytes, of_bytes, probability, least } => format!(
            "not read for itself: too improbable, {:.1} % of at least {:.1} %; {} of its {} were to be read for likelier programs",
            100.0 * probability,
            100.0 * least,
            Bytes(bytes),
            Bytes(of_bytes)
        ),
        ChoiceOutcome::NoRoom { of_bytes, of_s, budget_bytes } => format!(
            "not read: its {} would save {}, but programs that save more per byte used the budget of {}",
            Bytes(of_bytes),
            seconds(of_s),
            Bytes(budget_bytes)
        ),
        ChoiceOutcome::NothingToRead { files } => format!(
            "not read: all of its {files} files are pinned, on a network or on a disk of unknown cost"
        ),
    }
}

fn no_budget(limit: &Limit) -> String {
    match limit {
        Limit::Battery => "the machine was on its battery".to_owned(),
        Limit::Refaults { per_s, most_per_s } => format!(
            "memory was short: the kernel read {per_s:.0} pages a second again that it had dropped ({most_per_s:.0} are allowed)"
        ),
        Limit::Memory { available, reserve } => {
            format!("memory was short: {available} were available, of which {reserve} are left alone")
        }
    }
}

fn seconds(s: f64) -> String {
    Duration::try_from_secs_f64(s.max(0.0))
        .map_or_else(|_| format!("{s} s"), |time| Nanos::from(time).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_a_sentence() {
        let bytes = 101 << 20;
        let verdicts = [
            ChoiceOutcome::Chosen { bytes: bytes / 2, of_bytes: bytes, saved_s: 7.5, of_s: 14.6 },
            ChoiceOutcome::AlreadyResident,
            ChoiceOutcome::SmallGain { cold_s: 0.02, took_s: Some(1.5), least_s: 0.15 },
            ChoiceOutcome::SmallGain { cold_s: 0.02, took_s: None, least_s: 0.15 },
            ChoiceOutcome::CostsCpu { cold_s: 0.165, cpu_s: 2.0 },
            ChoiceOutcome::LeftAlone,
            ChoiceOutcome::Improbable { probability: 0.011, least: 0.02 },
            ChoiceOutcome::Improbable { probability: 1.0, least: 0.51 },
            ChoiceOutcome::Shared { bytes: bytes / 2, of_bytes: bytes, probability: 0.004, least: 0.02 },
            ChoiceOutcome::NoRoom { of_bytes: bytes, of_s: f64::INFINITY, budget_bytes: 1 << 20 },
            ChoiceOutcome::NothingToRead { files: 3 },
        ];
        let limits = [
            Limit::Battery,
            Limit::Refaults { per_s: 512.3, most_per_s: 200.0 },
            Limit::Memory { available: Bytes::mib(90), reserve: Bytes::mib(100) },
        ];
        let of_verdicts = verdicts.iter().map(|verdict| why(verdict, None));
        let of_limits = limits.iter().map(|limit| why(&verdicts[0], Some(limit)));
        insta::assert_snapshot!(of_verdicts.chain(of_limits).collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn what_is_missing_is_told_with_its_reasons() {
        let file = |path: &str, kind, missing, known, pages| MissingFile {
            path: path.into(),
            kind,
            missing: Bytes(missing),
            known: Bytes(known),
            pages,
        };
        let mut document = Missing {
            program: "/usr/bin/gedit".into(),
            at_s: 1000,
            took_ms: 1234,
            read: Bytes::mib(40),
            missing: Bytes::mib(3),
            known: Bytes::mib(1),
            in_files: 3,
            files: vec![
                file(
                    "/usr/lib/libx.so",
                    FileKind::File,
                    3 << 20,
                    1 << 20,
                    vec![[0, 1], [4, 700], [710, 711], [713, 714], [720, 721]],
                ),
                file("/dev/sda1", FileKind::Device, 4096, 0, vec![[9, 10]]),
            ],
        };
        let some = missing(&document, 1600);
        (document.files, document.in_files) = (Vec::new(), 0);
        insta::assert_snapshot!(some + "\n" + &missing(&document, 1600));
    }

    #[test]
    fn a_boot_is_told_in_order() {
        let decision = |at_s, occasion: &str, outcome: ChoiceOutcome| Decision {
            at_s,
            program: format!("/usr/bin/{occasion}"),
            occasion: occasion.into(),
            probability: 0.87,
            chosen: matches!(outcome, ChoiceOutcome::Chosen { .. }),
            why: why(&outcome, None),
            used: Some(Bytes(1)),
            wasted: Some(Bytes(0)),
        };
        let chosen = ChoiceOutcome::Chosen { bytes: 3 << 20, of_bytes: 4 << 20, saved_s: 0.5, of_s: 0.7 };
        let mut document = Boot {
            booted_s: 1_000,
            within_s: 300,
            chosen: Bytes::mib(3),
            decisions: vec![
                decision(9, "exec", ChoiceOutcome::AlreadyResident),
                decision(1_012, "exec", ChoiceOutcome::LeftAlone),
                decision(1_030, "session", chosen),
            ],
        };
        let some = boot(&document, 5_000);
        document.decisions.clear();
        insta::assert_snapshot!(some + "\n" + &boot(&document, 5_000));
    }

    #[test]
    fn a_long_path_shows_its_end() {
        let path = format!("/{}/file", "d".repeat(200));
        assert_eq!(end(&path).chars().count(), LONGEST);
        assert!(end(&path).starts_with('…') && end(&path).ends_with("d/file"));
        assert_eq!(end("/bin/a"), "/bin/a");
        assert_eq!(ago(i64::MAX, i64::MIN), "0 s");
        assert_eq!(ago(i64::MIN, i64::MAX), format!("{} days", i64::MAX / 86_400));
    }
}

//! The runs and their order. Pure.

use eke_bench_core::shuffled;

use super::Options;
use super::programs::Program;

/// How a program is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// Nothing of the program is in memory: no pages, dentries, inodes or file system metadata.
    Cold,
    /// The program was started just before.
    Warm,
    /// preload 0.6.4 reads ahead what it predicts.
    Preload,
    /// eke reads the program's file set ahead.
    Ahead,
    /// eke reads the file set from exec on.
    AtExec,
}

impl Variant {
    /// In the order of the table.
    pub const ALL: [Self; 5] = [Self::Cold, Self::Warm, Self::Preload, Self::Ahead, Self::AtExec];

    /// In reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
            Self::Preload => "preload",
            Self::Ahead => "eke ahead",
            Self::AtExec => "eke at exec",
        }
    }

    /// On the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ahead => "eke-ahead",
            Self::AtExec => "eke-exec",
            _ => self.name(),
        }
    }

    /// Is it a variant of eke?
    pub fn is_ours(self) -> bool {
        matches!(self, Self::Ahead | Self::AtExec)
    }
}

/// What is measured in a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum What {
    /// A start of a program.
    Start {
        /// From 0.
        round: usize,
        /// What is started.
        program: &'static Program,
    },
    /// The time in system calls, of one more start.
    Traced {
        /// What is started.
        program: &'static Program,
    },
    /// A second reader's latency during a start.
    Beside,
    /// Programs in a row.
    Row,
    /// The CPU time of tracing starts.
    Cost {
        /// What is started.
        program: &'static Program,
    },
}

/// One run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    /// The disk's place in [`Options::disks`].
    pub disk: usize,
    /// How programs are started.
    pub variant: Variant,
    /// What is measured.
    pub what: What,
}

/// All runs, disk by disk. Runs that clear the store come last.
pub fn runs(options: &Options, programs: &[&'static Program], variants: &[Variant]) -> Vec<Run> {
    let mut runs = Vec::new();
    for disk in 0..options.disks.len() {
        let mut add = |variant, what| runs.push(Run { disk, variant, what });
        for (round, program, variant) in starts(programs, variants, options.repeats) {
            add(variant, What::Start { round, program });
        }
        for (_, program, variant) in starts(programs, variants, usize::from(options.calls)) {
            add(variant, What::Traced { program });
        }
        if options.harm {
            let rounds = (0..options.repeats).flat_map(|round| shuffled(variants, round));
            rounds.for_each(|variant| add(variant, What::Beside));
        }
        if options.ten {
            // From the second round on, a warm row is the same as a cold one.
            let cold = variants.iter().filter(|variant| **variant != Variant::Warm);
            cold.for_each(|variant| add(*variant, What::Row));
        }
        if options.cost && disk + 1 == options.disks.len() {
            let ending = programs.iter().filter(|program| program.ends());
            ending.for_each(|program| add(Variant::AtExec, What::Cost { program }));
        }
    }
    runs
}

/// All variants of a program in an order of chance, then the next program; then all again, so that changes of the machine over time
/// affect all variants alike.
fn starts(
    programs: &[&'static Program],
    variants: &[Variant],
    repeats: usize,
) -> impl Iterator<Item = (usize, &'static Program, Variant)> {
    let of_round = move |round| {
        let of_program = move |program: &&'static Program| {
            let program = *program;
            shuffled(variants, round).into_iter().map(move |variant| (round, program, variant))
        };
        programs.iter().flat_map(of_program)
    };
    (0..repeats).flat_map(of_round)
}

/// Repeats these programs up to `count`.
pub fn in_a_row(programs: &[&'static Program], count: usize) -> Vec<&'static Program> {
    programs.iter().copied().cycle().take(if programs.is_empty() { 0 } else { count }).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::programs::{Set, all, named};

    pub fn options() -> Options {
        Options {
            set: Set::Quick,
            repeats: 2,
            disks: vec![Some("sd".into()), None],
            variants: Vec::new(),
            programs: Vec::new(),
            preload_cycle_s: 2,
            patience: std::time::Duration::from_secs(60),
            documents: None,
            harm: true,
            calls: true,
            ten: false,
            cost: false,
        }
    }

    #[test]
    fn variants_of_a_program_follow_each_other_and_rounds_repeat() {
        let programs: Vec<&Program> = all().take(2).collect();
        let starts = starts(&programs, &[Variant::Cold, Variant::Warm], 2);
        let seen: Vec<_> = starts.map(|(round, program, variant)| (round, program.name, variant)).collect();
        let (a, b) = (programs[0].name, programs[1].name);
        let round = |n| {
            let order = shuffled(&[Variant::Cold, Variant::Warm], n);
            [a, b].into_iter().flat_map(|name| order.iter().map(move |variant| (n, name, *variant))).collect()
        };
        let rounds: [Vec<_>; 2] = [round(0), round(1)];
        assert_eq!(seen, rounds.concat());
    }

    #[test]
    fn every_disk_has_every_kind_of_run_and_the_last_one_the_cost() {
        let programs: Vec<&Program> = ["xterm", "python"].iter().filter_map(|n| named(n)).collect();
        let options = Options { ten: true, cost: true, ..options() };
        let runs = runs(&options, &programs, &[Variant::Cold, Variant::Warm]);
        let count = |disk, kind: fn(&What) -> bool| {
            runs.iter().filter(|run| run.disk == disk && kind(&run.what)).count()
        };
        for disk in [0, 1] {
            assert_eq!(count(disk, |what| matches!(what, What::Start { .. })), 8);
            assert_eq!(count(disk, |what| matches!(what, What::Traced { .. })), 4);
            assert_eq!(count(disk, |what| matches!(what, What::Beside)), 4);
            assert_eq!(count(disk, |what| matches!(what, What::Row)), 1, "no warm row");
        }
        let costs = |disk| count(disk, |what| matches!(what, What::Cost { .. }));
        assert_eq!((costs(0), costs(1)), (0, programs.iter().filter(|p| p.ends()).count()));
    }

    #[test]
    fn ten_in_a_row_go_round() {
        let programs: Vec<&Program> = ["xterm", "python"].iter().filter_map(|n| named(n)).collect();
        let row: Vec<_> = in_a_row(&programs, 3).iter().map(|p| p.name).collect();
        assert_eq!(row, ["xterm", "python", "xterm"]);
        assert!(in_a_row(&[], 10).is_empty());
    }

    #[test]
    fn words_are_their_own() {
        let words: std::collections::BTreeSet<_> = Variant::ALL.iter().map(|v| v.word()).collect();
        assert_eq!(words.len(), Variant::ALL.len());
        assert!(words.iter().all(|w| !w.contains([' ', ','])));
    }
}

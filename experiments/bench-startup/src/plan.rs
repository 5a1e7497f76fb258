//! Which runs there are, and in which order. Pure.

use super::programs::Program;

/// How a program is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// Nothing of it is in memory: no pages, dentries, inodes, nor metadata of the file system.
    Cold,
    /// It was started just before.
    Warm,
    /// preload 0.6.4 read ahead what it foresaw.
    Preload,
    /// eke read its file set ahead.
    Ahead,
    /// eke reads it from the moment of exec on.
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

    /// Is it eke's?
    pub fn is_ours(self) -> bool {
        matches!(self, Self::Ahead | Self::AtExec)
    }
}

/// One run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    /// From 0.
    pub round: usize,
    /// What is started.
    pub program: &'static Program,
    /// How.
    pub variant: Variant,
}

/// The runs on one disk. Of each program all variants follow each other, then the next program; then all again, so that what
/// changes on the machine meanwhile meets all variants alike.
pub fn runs(programs: &[&'static Program], variants: &[Variant], repeats: usize) -> Vec<Run> {
    let of_round = |round| {
        let of_program = move |program: &&'static Program| {
            let program = *program;
            variants.iter().map(move |variant| Run { round, program, variant: *variant })
        };
        programs.iter().flat_map(of_program)
    };
    (0..repeats).flat_map(of_round).collect()
}

/// These in a row, again and again, until there are so many.
pub fn in_a_row(programs: &[&'static Program], count: usize) -> Vec<&'static Program> {
    programs.iter().copied().cycle().take(if programs.is_empty() { 0 } else { count }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::{PROGRAMS, named};

    #[test]
    fn variants_of_a_program_follow_each_other_and_rounds_repeat() {
        let programs: Vec<&Program> = PROGRAMS.iter().take(2).collect();
        let runs = runs(&programs, &[Variant::Cold, Variant::Warm], 2);
        let seen: Vec<_> = runs.iter().map(|r| (r.round, r.program.name, r.variant)).collect();
        let (a, b) = (programs[0].name, programs[1].name);
        let round =
            |n| [(n, a, Variant::Cold), (n, a, Variant::Warm), (n, b, Variant::Cold), (n, b, Variant::Warm)];
        assert_eq!(seen, [round(0), round(1)].concat());
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

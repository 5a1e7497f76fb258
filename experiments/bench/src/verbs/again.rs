//! The command line in a report makes the same experiment again: what tests of that share.

use std::fmt::Debug;

use clap::Parser;

use crate::args::{Args, Verb};

/// The experiment that `line` asks for.
pub fn parsed(line: &str) -> Verb {
    parsed_words(line.split(' ')).unwrap_or_else(|| panic!("{line}"))
}

/// The experiment that words ask for, of which the first two are `eke bench`.
pub fn parsed_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Option<Verb> {
    let words = words.into_iter().skip(2);
    Args::try_parse_from(std::iter::once("eke-bench").chain(words)).ok().map(|args| args.verb)
}

/// The command that is made of what a line asks for asks for the same, whatever the defaults will be.
pub fn the_command_makes_the_same<O, A: PartialEq + Debug>(
    lines: &[&str],
    options: impl Fn(&str) -> O,
    asked: impl Fn(&O) -> A,
    command: impl Fn(&O) -> String,
) {
    for line in lines {
        let first = options(line);
        let command = command(&first);
        let again = options(command.strip_prefix("sudo ").unwrap());
        assert_eq!(asked(&again), asked(&first), "{command}");
    }
}

//! What experiments have in common: the command line that makes one again, and what is said of one that was not held.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};

use eke_present::exit::{Failure, Status};

/// What is said of an experiment's end. A signal goes to its helpers, too (mke2fs, ip): that these failed is not the news then.
pub fn news<T, E>(held: Result<T, E>, stop: &AtomicBool, interrupted: E) -> Result<T, E> {
    held.map_err(|e| if stop.load(Ordering::Relaxed) { interrupted } else { e })
}

/// An experiment that was not held, by the user's words or by the machine.
pub fn failure(error: &impl Display, is_usage: bool) -> Failure {
    Failure::new(if is_usage { Status::Usage } else { Status::Failed }, error.to_string())
}

#[cfg(test)]
pub mod again {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_signal_that_is_the_news() {
        let end = |stop| news(Err::<(), _>("mke2fs failed"), &AtomicBool::new(stop), "interrupted");
        assert_eq!((end(false), end(true)), (Err("mke2fs failed"), Err("interrupted")));
        assert_eq!(news(Ok::<_, &str>(1), &AtomicBool::new(true), "interrupted"), Ok(1));
    }
}

//! What experiments have in common: the command line that makes one again, and what is said of one that was not held.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};

use eke_model::units::Bytes;

use crate::exit::{Failure, Status};

/// `--variants a,b`; nothing where nothing was named.
pub fn list<'a>(option: &str, words: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let words: Vec<&str> = words.into_iter().collect();
    (!words.is_empty()).then(|| format!("{option} {}", words.join(",")))
}

/// `--no-harm` and its like: those that are set.
pub fn set<'a>(flags: &'a [(&'a str, bool)]) -> impl Iterator<Item = String> + 'a {
    flags.iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| (*flag).to_owned())
}

/// Exactly, in the largest unit that is whole.
pub fn size(size: Bytes) -> String {
    let units = [(30, "G"), (20, "M"), (10, "K")];
    let whole = units.iter().find(|(shift, _)| size.0 > 0 && size.0 % (1 << shift) == 0);
    whole.map_or(size.0.to_string(), |(shift, unit)| format!("{}{unit}", size.0 >> shift))
}

/// One word for a shell.
pub fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./,+=:@".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

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

    use crate::args::{Args, Bench, Verb};

    /// What `line` asks for.
    pub fn parsed(line: &str) -> Bench {
        match Args::try_parse_from(line.split(' ')).unwrap().verb {
            Some(Verb::Bench(bench)) => bench,
            other => panic!("{other:?}"),
        }
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
    fn lists_and_flags_are_there_only_if_something_is() {
        assert_eq!(list("--links", ["1g", "10g"]).unwrap(), "--links 1g,10g");
        assert_eq!(list("--links", []), None);
        assert_eq!(set(&[("--no-a", true), ("--no-b", false)]).collect::<Vec<_>>(), ["--no-a"]);
    }

    #[test]
    fn after_a_signal_that_is_the_news() {
        let end = |stop| news(Err::<(), _>("mke2fs failed"), &AtomicBool::new(stop), "interrupted");
        assert_eq!((end(false), end(true)), (Err("mke2fs failed"), Err("interrupted")));
        assert_eq!(news(Ok::<_, &str>(1), &AtomicBool::new(true), "interrupted"), Ok(1));
    }
}

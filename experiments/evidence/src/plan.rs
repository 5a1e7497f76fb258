//! What is left to run, and how long that takes. Pure.

use std::fmt;

use anyhow::ensure;

use crate::list::Experiment;

/// The experiments of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan<'a> {
    /// Each with its state, in the order of the list.
    pub experiments: Vec<(&'a Experiment, State)>,
}

/// Whether an experiment runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It will.
    Left,
    /// Its result is there, of this commit.
    Done,
    /// It needs root.
    NeedsRoot,
    /// It needs `--corpus`.
    NeedsCorpus,
}

/// What the caller has.
#[derive(Debug, Clone, Copy)]
pub struct Means {
    /// It is root.
    pub root: bool,
    /// It named a corpus.
    pub corpus: bool,
}

impl<'a> Plan<'a> {
    /// Of the experiments named in `only`, or all if it is empty. `done`: the result of this file is there.
    ///
    /// # Errors
    /// An unknown name.
    pub fn new(
        list: &'a [Experiment],
        only: &[String],
        means: Means,
        done: impl Fn(&str) -> bool,
    ) -> anyhow::Result<Self> {
        let names = |name: &String, e: &Experiment| e.result == *name || e.result == format!("{name}.json");
        for name in only {
            let known: Vec<&str> = list.iter().map(|e| e.result.as_str()).collect();
            ensure!(
                list.iter().any(|e| names(name, e)),
                "no experiment makes {name}; these are made: {}",
                known.join(", ")
            );
        }
        let chosen = list.iter().filter(|e| only.is_empty() || only.iter().any(|name| names(name, e)));
        let state = |e: &Experiment| match e {
            e if done(&e.result) => State::Done,
            e if e.needs_corpus && !means.corpus => State::NeedsCorpus,
            e if e.root && !means.root => State::NeedsRoot,
            _ => State::Left,
        };
        Ok(Self { experiments: chosen.map(|e| (e, state(e))).collect() })
    }

    /// The experiments that will run.
    pub fn left(&self) -> Vec<&'a Experiment> {
        self.experiments.iter().filter(|(_, state)| *state == State::Left).map(|(e, _)| *e).collect()
    }
}

/// The time of these, by earlier runs.
pub fn minutes(experiments: &[&Experiment]) -> u64 {
    experiments.iter().map(|e| e.minutes).sum()
}

/// Minutes as a person says them.
pub fn time(minutes: u64) -> String {
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {minutes:02} min"),
    }
}

impl fmt::Display for Plan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (experiment, state) in &self.experiments {
            let state = match state {
                State::Left => time(experiment.minutes),
                State::Done => "done".into(),
                State::NeedsRoot => "left out: needs root".into(),
                State::NeedsCorpus => "left out: needs --corpus DIR".into(),
            };
            writeln!(f, "{:<28} {state}", experiment.result)?;
        }
        let left = self.left();
        match left.len() {
            0 => writeln!(f, "Nothing is left to run."),
            n => writeln!(f, "{n} to run, about {} on two CPUs.", time(minutes(&left))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::parse;

    const LIST: &str = "\
[[experiment]]\nresult = 'a.json'\nwords = []\nminutes = 50\n\
[[experiment]]\nresult = 'b.json'\nwords = []\nminutes = 20\nroot = true\n\
[[experiment]]\nresult = 'c.json'\nwords = []\nminutes = 5\nneeds_corpus = true\n\
[[experiment]]\nresult = 'd.json'\nwords = []\nminutes = 20\n";

    fn shown(only: &[&str], root: bool, done: &[&str]) -> String {
        let list = parse(LIST).unwrap();
        let only: Vec<String> = only.iter().map(ToString::to_string).collect();
        let means = Means { root, corpus: false };
        Plan::new(&list, &only, means, |name| done.contains(&name)).unwrap().to_string()
    }

    #[test]
    fn what_is_there_and_what_is_not_possible_does_not_run() {
        assert_eq!(
            shown(&[], false, &[]),
            "a.json                       50 min\n\
             b.json                       left out: needs root\n\
             c.json                       left out: needs --corpus DIR\n\
             d.json                       20 min\n\
             2 to run, about 1 h 10 min on two CPUs.\n"
        );
        assert_eq!(
            shown(&["b", "d.json"], true, &["d.json", "b.json"]).lines().last(),
            Some("Nothing is left to run.")
        );
    }

    #[test]
    fn an_unknown_name_is_refused() {
        let list = parse(LIST).unwrap();
        let error =
            Plan::new(&list, &["x".into()], Means { root: true, corpus: true }, |_| false).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no experiment makes x; these are made: a.json, b.json, c.json, d.json"
        );
    }
}

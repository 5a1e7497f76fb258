//! The experiments, as data. Pure.

use anyhow::{Context, ensure};
use serde::Deserialize;

/// In a word: the directory of `--corpus`.
const CORPUS: &str = "{corpus}";

/// One experiment.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The file of its result.
    pub result: String,
    /// What follows `eke bench`.
    words: Vec<String>,
    /// How long it takes, by an earlier run.
    pub minutes: u64,
    /// Only root may run it.
    #[serde(default)]
    pub root: bool,
    /// Without a corpus it would measure something else.
    #[serde(default)]
    pub needs_corpus: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    experiment: Vec<Experiment>,
}

/// The experiments in `experiments.toml`.
///
/// # Errors
/// It is no such list, or a result is no plain file name.
pub fn parse(text: &str) -> anyhow::Result<Vec<Experiment>> {
    let list: List = toml::from_str(text).context("the list of experiments is wrong")?;
    for experiment in &list.experiment {
        let plain = !experiment.result.starts_with('.') && !experiment.result.contains('/');
        ensure!(plain, "{}: a result is a file name", experiment.result);
    }
    Ok(list.experiment)
}

impl Experiment {
    /// What follows `eke bench`, with this corpus or without an option that names one.
    pub fn words(&self, corpus: Option<&str>) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        for word in &self.words {
            match corpus {
                _ if !word.contains(CORPUS) => words.push(word.clone()),
                Some(directory) => words.push(word.replace(CORPUS, directory)),
                None => drop(words.pop()),
            }
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corpus_is_put_in_or_left_out_with_its_option() {
        let list = "[[experiment]]\nresult = 'a.json'\nwords = ['web', '--corpus', '{corpus}-zip', '--quick']\nminutes = 1";
        let experiment = &parse(list).unwrap()[0];
        assert_eq!(experiment.words(Some("/c")), ["web", "--corpus", "/c-zip", "--quick"]);
        assert_eq!(experiment.words(None), ["web", "--quick"]);
    }

    #[test]
    fn a_result_stays_in_its_directory() {
        for name in ["../a.json", "/a.json", ".a"] {
            let list = format!("[[experiment]]\nresult = '{name}'\nwords = []\nminutes = 1");
            assert!(parse(&list).is_err(), "{name}");
        }
    }
}

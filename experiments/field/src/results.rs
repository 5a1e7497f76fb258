//! What was found, kept in one file: a finished machine is not run again.

use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::steps::{Ending, Outcome};

/// The results of all machines.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Results {
    /// In the order of the description
    pub machines: Vec<Row>,
}

/// One machine's results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its name
    pub machine: String,
    /// `uname -r -m`
    pub kernel: String,
    /// The package's version
    pub package: String,
    /// The commit that it was made of; empty if that is not known.
    #[serde(default)]
    pub commit: String,
    /// Whether all its steps were run.
    pub finished: bool,
    /// In order
    pub steps: Vec<Outcome>,
}

impl Row {
    /// The time of all its steps.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.steps.iter().map(|step| step.seconds).sum()
    }

    /// Whether no step failed or was skipped.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.finished && self.steps.iter().all(|step| matches!(step.ending, Ending::Ok | Ending::NotPossible))
    }
}

impl Results {
    /// Reads the file; none if it does not exist.
    ///
    /// # Errors
    /// It cannot be read, or is no such file.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        match std::fs::read_to_string(path) {
            Ok(text) => {
                serde_json::from_str(&text).with_context(|| format!("{} has no such results", path.display()))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Writes the file.
    ///
    /// # Errors
    /// The system's answer.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        let part = path.with_extension("part");
        eke_vm::write_scratch(&part, text.as_bytes())?;
        std::fs::rename(&part, path).with_context(|| format!("cannot rename {}", part.display()))
    }

    /// A machine's results.
    #[must_use]
    pub fn of(&self, machine: &str) -> Option<&Row> {
        self.machines.iter().find(|row| row.machine == machine)
    }

    /// Replaces a machine's results; the machines stay in the order of `names`.
    pub fn put(&mut self, row: Row, names: &[String]) {
        self.machines.retain(|known| known.machine != row.machine);
        self.machines.push(row);
        self.machines
            .sort_by_key(|row| names.iter().position(|name| *name == row.machine).unwrap_or(names.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::{Results, Row};
    use crate::steps::judge;

    fn row(machine: &str, status: i32) -> Row {
        let steps = vec![judge("up", status, "@value boot_s 2.5\nwhy\n", 1.0)];
        Row {
            machine: machine.into(),
            kernel: "6.1 x86_64".into(),
            package: "1".into(),
            commit: String::new(),
            finished: true,
            steps,
        }
    }

    #[test]
    fn rows_are_replaced_and_kept_in_order() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("field.json");
        let mut results = Results::read(&file).unwrap();
        let names = ["a".to_owned(), "b".to_owned()];
        for (machine, status) in [("b", 1), ("a", 77), ("b", 0)] {
            results.put(row(machine, status), &names);
        }
        results.write(&file).unwrap();
        let results = Results::read(&file).unwrap();
        assert_eq!(results.machines.iter().map(|r| r.machine.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert!(results.of("a").unwrap().is_good() && results.of("b").unwrap().is_good());
        assert!(!row("c", 1).is_good());
        assert!(!Row { finished: false, ..row("c", 0) }.is_good());
    }
}

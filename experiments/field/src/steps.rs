//! What is done on a machine: shell scripts as data, and what their output means. Pure.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

/// One step of `steps.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Its name, a column of the table.
    pub name: String,
    /// The lists that have it.
    pub lists: Vec<String>,
    /// Restarts the machine before the script, which then checks what it finds.
    #[serde(default)]
    pub reboot: bool,
    /// Seconds until it has failed.
    #[serde(default = "five_minutes")]
    pub timeout_s: u64,
    /// The machine is not driven further if this fails.
    #[serde(default)]
    pub essential: bool,
    /// For `sh`. Status 0: done. 77: not possible here; the last line says why.
    pub script: String,
}

const fn five_minutes() -> u64 {
    300
}

/// The steps and the functions that all of them have.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Steps {
    /// Shell functions before each script.
    pub functions: String,
    /// In order.
    pub step: Vec<Step>,
}

/// The steps of a description.
///
/// # Errors
/// A wrong key or value with its line, or a step of which a list has two.
pub fn parse(text: &str) -> anyhow::Result<Steps> {
    let steps: Steps = toml::from_str(text).context("steps.toml")?;
    for (index, step) in steps.step.iter().enumerate() {
        let before = steps.step.get(..index).unwrap_or_default();
        let twice =
            before.iter().any(|s| s.name == step.name && s.lists.iter().any(|l| step.lists.contains(l)));
        ensure!(!twice, "steps.toml: two steps {} of one list", step.name);
    }
    Ok(steps)
}

/// The steps of a list, in order.
#[must_use]
pub fn of<'a>(steps: &'a Steps, list: &str) -> Vec<&'a Step> {
    steps.step.iter().filter(|step| step.lists.iter().any(|name| name == list)).collect()
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// As expected
    Ok,
    /// Otherwise
    Failed,
    /// The machine cannot do it.
    NotPossible,
    /// An earlier essential step failed.
    Skipped,
}

/// What a step gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The step.
    pub step: String,
    /// How it ended.
    pub ending: Ending,
    /// Why, if it did not end well.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What the script measured: lines `@value NAME NUMBER`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, f64>,
    /// On the host's clock.
    pub seconds: f64,
}

/// The outcome of a script by its status and output.
#[must_use]
pub fn judge(step: &str, status: i32, output: &str, seconds: f64) -> Outcome {
    let ending = match status {
        0 => Ending::Ok,
        77 => Ending::NotPossible,
        _ => Ending::Failed,
    };
    let reason = if ending == Ending::Ok { String::new() } else { reason(status, output) };
    Outcome { step: step.to_owned(), ending, reason, values: values(output), seconds }
}

/// The last line with text that is no value.
fn reason(status: i32, output: &str) -> String {
    let said =
        output.lines().rev().map(str::trim).find(|line| !line.is_empty() && !line.starts_with("@value "));
    match (status, said) {
        (124 | 137, _) => "ran out of time".to_owned(),
        (_, Some(line)) => line.strip_prefix("FAILED: ").unwrap_or(line).chars().take(200).collect(),
        (status, None) => format!("status {status}"),
    }
}

fn values(output: &str) -> BTreeMap<String, f64> {
    let value = |line: &str| {
        let (name, number) = line.strip_prefix("@value ")?.split_once(' ')?;
        Some((name.to_owned(), number.trim().parse().ok()?))
    };
    output.lines().filter_map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::{Ending, judge, of, parse};

    #[test]
    fn the_status_and_the_last_line_are_the_outcome() {
        let failed = judge("up", 1, "first\nFAILED: no zram swap\n@value boot_s 1.5\n\n", 2.0);
        assert_eq!((failed.ending, failed.reason.as_str()), (Ending::Failed, "no zram swap"));
        assert_eq!(failed.values.get("boot_s"), Some(&1.5));
        assert_eq!(judge("up", 77, "needs 5.11\n", 0.0).ending, Ending::NotPossible);
        let done = judge("up", 0, "text\n@value x nothing\n", 0.0);
        assert_eq!((done.ending, done.reason.as_str(), done.values.len()), (Ending::Ok, "", 0));
        assert_eq!(judge("up", 124, "text\n", 0.0).reason, "ran out of time");
        assert_eq!(judge("up", 3, "", 0.0).reason, "status 3");
    }

    #[test]
    fn a_list_takes_its_steps_in_order() {
        let text = "functions = \"\"\n[[step]]\nname = \"a\"\nlists = [\"x\", \"y\"]\nscript = \"\"\n[[step]]\nname = \"b\"\nlists = [\"y\"]\nscript = \"\"\n";
        let steps = parse(text).unwrap();
        assert_eq!(of(&steps, "y").iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(of(&steps, "x").len(), 1);
        assert!(parse(&text.replace("\"b\"", "\"a\"")).unwrap_err().to_string().contains("two steps a"));
    }
}

//! Parses a guest's output, and makes rows of it. Pure.

use eke_results::report::{Metric, less};
use eke_results::rows::{Rows, params};
use serde::Deserialize;

use super::variants::{Guarding, Load};
use crate::guest::outcome::MARK;

/// The echoes over ssh.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
pub struct Echoes {
    /// How many came back.
    pub count: u64,
    /// The longest, in seconds of the guest; one that did not come back counts until the end.
    pub longest_s: f64,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trial {
    /// Why it could not be set up.
    pub failed: Option<String>,
    /// Seconds from the load's begin until it was over; `None` if it still ran when the time was over.
    pub over_s: Option<f64>,
    /// The load's own exit status.
    pub load_status: Option<i32>,
    /// Processes that the kernel ended.
    pub kernel_kills: u64,
    /// Programs beside the load that did not survive.
    pub lost: Vec<String>,
    /// The echoes.
    pub echoes: Echoes,
    /// Settings in force.
    pub settings: Vec<String>,
}

/// Parses the output. Unknown lines are left out.
pub fn parse(output: &str) -> Trial {
    let mut trial = Trial::default();
    for line in output.lines().filter_map(|line| line.strip_prefix(MARK)) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "failed" => trial.failed = Some(rest.to_owned()),
            "over" => {
                let mut words = rest.split(' ');
                trial.over_s = words.next().and_then(|s| s.parse().ok()).filter(|s| *s >= 0.0);
                trial.load_status = words.next().and_then(|s| s.parse().ok());
            }
            "kernel" => trial.kernel_kills = rest.parse().unwrap_or_default(),
            "lost" => trial.lost.push(rest.to_owned()),
            "echo" => trial.echoes = serde_json::from_str(rest).unwrap_or_default(),
            "set" => trial.settings.push(rest.to_owned()),
            _ => {}
        }
    }
    trial
}

const ECHO: &str = "longest echo over ssh";
const OVER: &str = "until the load is over";
const LOST: &str = "other programs lost";
const WRONG: &str = "ended although it fits";
const KERNEL: &str = "ended by the kernel";

/// The metrics of the report.
pub fn metrics() -> Vec<Metric> {
    let guest = "in seconds of the emulated machine, whose CPU is 10 to 18 times slower: only ratios between variants count";
    vec![
        less(
            ECHO,
            &format!(
                "from a line sent through a session of sshd to its return, while the load runs; {guest}"
            ),
        ),
        less(
            OVER,
            &format!(
                "from the start of a load that does not fit until it is ended; {guest}; 150 if it was not"
            ),
        ),
        less(
            LOST,
            "of sshd, an editor, the agent, and the browser whose tabs take the memory: how many did not survive",
        ),
        less(WRONG, "1 for a run in which a program as large as RAM, which fits compressed, was ended"),
        less(KERNEL, "processes that the kernel's OOM killer ended"),
    ]
}

/// Adds one run.
pub fn add(guarding: Guarding, load: Load, trial: &Trial, rows: &mut Rows) {
    let params = params([("load", load.name().into())]);
    let mut put = |metric, unit, value| rows.add(guarding.name(), &params, metric, unit, [value]);
    put(ECHO, "s", trial.echoes.longest_s);
    put(LOST, "", trial.lost.len() as f64);
    put(KERNEL, "", trial.kernel_kills as f64);
    if load == Load::Fits {
        put(WRONG, "", f64::from(u8::from(trial.load_status != Some(0))));
    } else {
        put(OVER, "s", trial.over_s.unwrap_or(f64::from(super::script::LONGEST_S)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_read_from_its_lines() {
        let trial = parse(
            "noise\n@eke-guest over 12.5 143\n@eke-guest kernel 2\n@eke-guest lost editor\n\
             @eke-guest echo {\"count\":9,\"longest_s\":1.5}\n@eke-guest guard \"guard\":{}\n",
        );
        assert_eq!((trial.over_s, trial.load_status, trial.kernel_kills), (Some(12.5), Some(143), 2));
        assert_eq!((trial.lost.as_slice(), trial.echoes.longest_s), (&["editor".to_owned()][..], 1.5));
        assert_eq!(parse("@eke-guest over -1 \n").over_s, None);
        assert_eq!(parse("@eke-guest failed no ssh\n").failed.as_deref(), Some("no ssh"));
    }

    #[test]
    fn a_program_that_fits_counts_as_wrong_only_if_it_was_ended() {
        let value = |status| {
            let mut rows = Rows::default();
            let trial = Trial { load_status: status, ..Trial::default() };
            add(Guarding::Eke, Load::Fits, &trial, &mut rows);
            rows.done().into_iter().find(|row| row.metric == WRONG).map(|row| row.median)
        };
        assert_eq!((value(Some(0)), value(Some(137)), value(None)), (Some(0.0), Some(1.0), Some(1.0)));
    }
}

//! `eke prefetch boot`.

use eke_linux::Root;
use eke_model::units::Bytes;
use eke_prefetch_model::choose::ChoiceOutcome;
use eke_prefetch_store::{Access, Decision, MOST_DECISIONS};
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::{document, put};

use crate::documents::Boot;
use crate::{Store, explain, failure, text};

/// Seconds after the boot in which decisions count as part of it.
const WITHIN_S: u64 = 300;

/// The verb.
pub fn run(json: bool, root: &Root, store: &Store) -> Outcome {
    let keep = store.open(Access::Read)?;
    let uptime = root.read("proc/uptime").map_err(|e| Failure::new(Status::Failed, e.to_string()))?;
    let names = explain::names(&keep, store)?;
    let booted_s = store.now_s.saturating_sub(uptime_s(&uptime));
    let boot = root.read("proc/sys/kernel/random/boot_id").unwrap_or_default();
    let stored_since = keep.decisions_of_boot(boot.trim()).map_err(failure)?;
    let of_boot = of_boot(keep.decisions(None, MOST_DECISIONS).map_err(failure)?, booted_s, stored_since);
    let document = Boot {
        booted_s,
        within_s: WITHIN_S,
        chosen: Bytes(of_boot.iter().map(chosen_bytes).sum()),
        decisions: of_boot.iter().map(|d| explain::decision(d, &names)).collect(),
    };
    document::print(json, &document, |d| put!("{}", text::boot(d, store.now_s)))?;
    Ok(Status::Done)
}

/// Whole seconds since the boot, the first number of `/proc/uptime` (proc_uptime(5)); 0 for any other text.
fn uptime_s(text: &str) -> i64 {
    let seconds = text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
    seconds.map_or(0, |s| s as i64)
}

/// Those of the boot, of the newest first: the earliest first. The newest `stored_since` were stored since it. If one of them seems older, the clock was
/// not set yet, as early in the boot of a machine without a battery.
fn of_boot(newest_first: Vec<Decision>, booted_s: i64, stored_since: usize) -> Vec<Decision> {
    let end_s = booted_s.saturating_add_unsigned(WITHIN_S);
    let is_of = |at: usize, d: &Decision| d.at_s <= end_s && (at < stored_since || d.at_s >= booted_s);
    let of = newest_first.into_iter().enumerate().filter(|(at, d)| is_of(*at, d));
    let mut of: Vec<Decision> = of.map(|(_, d)| d).collect();
    of.reverse();
    of
}

fn chosen_bytes(decision: &Decision) -> u64 {
    match decision.outcome {
        ChoiceOutcome::Chosen { bytes, .. } if decision.limit.is_none() => bytes,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use eke_prefetch_model::ProgramId;
    use eke_prefetch_model::choose::Occasion;

    use super::*;

    fn decision(at_s: i64, outcome: ChoiceOutcome) -> Decision {
        let (program, occasion) = (ProgramId(1), Occasion::Exec);
        Decision { at_s, occasion, program, probability: 1.0, outcome, limit: None, usage: None }
    }

    #[test]
    fn the_first_minutes_count_and_the_earliest_comes_first() {
        let all = [1_301, 1_300, 1_000, 999].map(|at_s| decision(at_s, ChoiceOutcome::AlreadyResident));
        let times: Vec<i64> = of_boot(all.into(), 1_000, 0).iter().map(|d| d.at_s).collect();
        assert_eq!(times, [1_000, 1_300]);
    }

    #[test]
    fn decisions_before_the_clock_was_set_are_of_the_boot() {
        let all = [1_020, 12, 11, 990].map(|at_s| decision(at_s, ChoiceOutcome::AlreadyResident));
        let times: Vec<i64> = of_boot(all.into(), 1_000, 3).iter().map(|d| d.at_s).collect();
        assert_eq!(times, [11, 12, 1_020]);
    }

    #[test]
    fn bytes_that_were_not_to_be_read_do_not_count() {
        let chosen = ChoiceOutcome::Chosen { bytes: 7, of_bytes: 9, saved_s: 1.0, of_s: 2.0 };
        assert_eq!(chosen_bytes(&decision(1, chosen)), 7);
        let limit = Some(eke_prefetch_model::choose::Limit::Battery);
        assert_eq!(chosen_bytes(&Decision { limit, ..decision(1, chosen) }), 0);
        assert_eq!(chosen_bytes(&decision(1, ChoiceOutcome::LeftAlone)), 0);
    }

    #[test]
    fn the_time_since_the_boot_is_the_first_number() {
        assert_eq!(uptime_s("350735.47 234388.90\n"), 350_735);
        assert_eq!((uptime_s(""), uptime_s("x 1"), uptime_s("NaN 1")), (0, 0, 0));
    }
}

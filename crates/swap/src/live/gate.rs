//! May maintenance use CPU and disk now?

use super::facts::{Facts, MachineLoad};

/// The gate closes if some task waited for memory for this percentage of the last 10 s.
pub const WAITING_PERCENT: f64 = 5.0;
/// It closes at 1 MiB/s of reclaimed anonymous pages. Memory PSI alone does not suffice: re-read file pages raise it, too.
pub const RECLAIM_PER_S: f64 = 256.0;
/// It closes with less idle CPU. Recompression takes one CPU, which is half of a machine with two.
pub const IDLE_CPU_SHARE: f64 = 0.5;
/// Maintenance starts when the gate has been open for this long.
pub const CALM_MS: u64 = 30_000;

/// What closes the gate; `None` if it is open.
pub fn closed_by(facts: &Facts, load: &MachineLoad) -> Option<&'static str> {
    let closes = [
        (facts.waits_for_mains, "the machine runs on its battery"),
        (load.waiting_avg10_percent.is_some_and(|p| p >= WAITING_PERCENT), "tasks wait for memory"),
        (load.anonymous_reclaim_per_s >= RECLAIM_PER_S, "pages are being swapped out"),
        (load.idle_cpu_share < IDLE_CPU_SHARE, "the CPU is busy"),
    ];
    closes.into_iter().find(|(closed, _)| *closed).map(|(_, why)| why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calm() -> MachineLoad {
        MachineLoad {
            waiting_avg10_percent: Some(4.9),
            anonymous_reclaim_per_s: 255.0,
            idle_cpu_share: 0.5,
            available_share: 0.3,
        }
    }

    #[test]
    fn each_of_the_four_closes_it() {
        let facts = Facts::default();
        assert_eq!(closed_by(&facts, &calm()), None);
        assert!(closed_by(&Facts { waits_for_mains: true, ..Facts::default() }, &calm()).is_some());
        assert!(closed_by(&facts, &MachineLoad { waiting_avg10_percent: Some(5.0), ..calm() }).is_some());
        assert!(closed_by(&facts, &MachineLoad { anonymous_reclaim_per_s: 256.0, ..calm() }).is_some());
        assert!(closed_by(&facts, &MachineLoad { idle_cpu_share: 0.49, ..calm() }).is_some());
    }

    #[test]
    fn without_psi_the_other_three_decide() {
        assert_eq!(
            closed_by(&Facts::default(), &MachineLoad { waiting_avg10_percent: None, ..calm() }),
            None
        );
    }
}

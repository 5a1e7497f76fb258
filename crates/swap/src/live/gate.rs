//! May maintenance cost CPU and disk now?

use super::facts::{Facts, Figures};

/// Some task waited for memory for this share of the last 10 s.
pub const WAITING_PERCENT: f64 = 5.0;
/// 1 MiB a second of anonymous pages. Memory PSI alone does not tell: re-read file pages raise it, too.
pub const RECLAIM_PER_S: f64 = 256.0;
/// Recompression takes one CPU; on a machine with two that is half.
pub const IDLE_CPU_SHARE: f64 = 0.5;
/// The gate must have been open for this long before anything starts.
pub const CALM_MS: u64 = 30_000;

/// What closes the gate; `None` if it is open.
pub fn closed_by(facts: &Facts, figures: &Figures) -> Option<&'static str> {
    let closes = [
        (facts.waits_for_mains, "the machine runs on its battery"),
        (figures.waiting_avg10_percent.is_some_and(|p| p >= WAITING_PERCENT), "tasks wait for memory"),
        (figures.anonymous_reclaim_per_s >= RECLAIM_PER_S, "pages are being swapped out"),
        (figures.idle_cpu_share < IDLE_CPU_SHARE, "the CPU is busy"),
    ];
    closes.into_iter().find(|(closed, _)| *closed).map(|(_, why)| why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calm() -> Figures {
        Figures {
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
        assert!(closed_by(&facts, &Figures { waiting_avg10_percent: Some(5.0), ..calm() }).is_some());
        assert!(closed_by(&facts, &Figures { anonymous_reclaim_per_s: 256.0, ..calm() }).is_some());
        assert!(closed_by(&facts, &Figures { idle_cpu_share: 0.49, ..calm() }).is_some());
    }

    #[test]
    fn a_kernel_without_pressure_figures_is_judged_by_the_others() {
        assert_eq!(closed_by(&Facts::default(), &Figures { waiting_avg10_percent: None, ..calm() }), None);
    }
}

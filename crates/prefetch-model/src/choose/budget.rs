//! How much memory prefetch may fill. Pure.

use serde::{Deserialize, Serialize};

use eke_model::units::Bytes;

/// Why something is prefetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Occasion {
    /// The program may start soon.
    Ahead,
    /// The program has started.
    Exec,
    /// A session began.
    Session,
}

/// The state of the machine's memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Memory {
    /// MemTotal, or the limit of eke's control group if that is lower.
    pub total: Bytes,
    /// MemAvailable: what programs can allocate without swapping; or what that group has left. MemFree is near zero on any machine that has run for a while.
    pub available: Bytes,
    /// Refaulted file pages per second (`workingset_activate_file` of `/proc/vmstat`: those of pages in use) while the kernel reclaims, without those of programs that are starting and of eke.
    pub refaults_per_s: f64,
    /// Whether the machine runs on battery.
    pub on_battery: bool,
}

/// The user's limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// Available memory to leave free, in bytes.
    pub reserve: Bytes,
    /// The share of the rest that prefetch may fill.
    pub share: f64,
    /// Above this refault rate memory is short: reading ahead would evict pages in use.
    pub most_refaults_per_s: f64,
    /// Whether to prefetch on battery.
    pub on_battery: bool,
}

impl Rules {
    /// The defaults: a reserve of 5 % of RAM, at least 64 MiB; half of the remaining available memory, because filling it evicts pages of files that
    /// other programs read.
    pub fn of(total: Bytes) -> Self {
        Self {
            reserve: total.scaled(0.05).max(Bytes::mib(64)),
            share: 0.5,
            most_refaults_per_s: 200.0,
            on_battery: false,
        }
    }
}

/// Why the budget is zero.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "limit", rename_all = "snake_case")]
pub enum Limit {
    /// Nothing is read ahead on battery.
    Battery,
    /// Memory is short: the kernel rereads pages that it evicted.
    Refaults {
        /// Pages per second.
        per_s: f64,
        /// The allowed rate.
        most_per_s: f64,
    },
    /// Available memory is within the reserve.
    Memory {
        /// Available memory.
        available: Bytes,
        /// The reserve.
        reserve: Bytes,
    },
}

/// A budget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Allowance {
    /// Bytes that may be filled.
    pub budget: Bytes,
    /// Why it is zero.
    pub limit: Option<Limit>,
}

/// The memory that may be filled now: `share · (available - reserve)`, and nothing on battery or while memory is short. A started program reads its
/// files anyway, so only the reserve counts then.
pub fn allowance(memory: &Memory, rules: &Rules, occasion: Occasion) -> Allowance {
    let none = |limit| Allowance { budget: Bytes(0), limit: Some(limit) };
    let spare = memory.available.saturating_sub(rules.reserve);
    if spare.0 == 0 {
        return none(Limit::Memory { available: memory.available, reserve: rules.reserve });
    }
    if occasion == Occasion::Exec {
        return Allowance { budget: spare, limit: None };
    }
    if memory.on_battery && !rules.on_battery {
        return none(Limit::Battery);
    }
    if memory.refaults_per_s > rules.most_refaults_per_s {
        return none(Limit::Refaults { per_s: memory.refaults_per_s, most_per_s: rules.most_refaults_per_s });
    }
    Allowance { budget: spare.scaled(rules.share.clamp(0.0, 1.0)), limit: None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn memory(available_mib: u64) -> Memory {
        Memory {
            total: Bytes::mib(2000),
            available: Bytes::mib(available_mib),
            refaults_per_s: 0.0,
            on_battery: false,
        }
    }

    #[test]
    fn a_budget_by_the_rules() {
        let rules = Rules::of(Bytes::mib(2000));
        assert_eq!(rules.reserve, Bytes::mib(100));
        assert_eq!(Rules::of(Bytes::mib(256)).reserve, Bytes::mib(64));
        let of = |memory: Memory, occasion| allowance(&memory, &rules, occasion);
        for occasion in [Occasion::Ahead, Occasion::Session] {
            assert_eq!(of(memory(1100), occasion).budget, Bytes::mib(500));
            let battery = of(Memory { on_battery: true, ..memory(1100) }, occasion);
            assert_eq!((battery.budget, battery.limit), (Bytes(0), Some(Limit::Battery)));
            let short = of(Memory { refaults_per_s: 500.0, ..memory(1100) }, occasion);
            assert!(matches!(short.limit, Some(Limit::Refaults { .. })) && short.budget == Bytes(0));
        }
        let allowing = Rules { on_battery: true, ..rules };
        let battery = Memory { on_battery: true, ..memory(1100) };
        assert_eq!(allowance(&battery, &allowing, Occasion::Ahead).budget, Bytes::mib(500));
        let started = of(Memory { refaults_per_s: 500.0, on_battery: true, ..memory(1100) }, Occasion::Exec);
        assert_eq!(started, Allowance { budget: Bytes::mib(1000), limit: None });
        for occasion in [Occasion::Ahead, Occasion::Exec, Occasion::Session] {
            let none = of(memory(100), occasion);
            assert!(matches!(none.limit, Some(Limit::Memory { .. })) && none.budget == Bytes(0));
        }
    }

    proptest! {
        #[test]
        fn it_leaves_the_reserve(available in 0u64..5000, reserve in 0u64..5000, share in -1.0f64..3.0) {
            let rules = Rules { reserve: Bytes::mib(reserve), share, ..Rules::of(Bytes::mib(2000)) };
            for occasion in [Occasion::Ahead, Occasion::Exec, Occasion::Session] {
                let allowed = allowance(&memory(available), &rules, occasion);
                prop_assert!(allowed.budget.0 + rules.reserve.0.min(Bytes::mib(available).0) <= Bytes::mib(available).0);
            }
        }
    }
}

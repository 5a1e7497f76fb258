//! The limits of a fetch.

use std::time::Duration;

use eke_model::units::Bytes;
use eke_prefetch_model::choose::Rules;

/// The limits of a scheduler's fetches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Reading ahead pauses while less memory than this is available.
    pub reserve_bytes: u64,
    /// Reading ahead resumes after the disk was quiet for this long.
    pub quiet: Duration,
    /// A worker without progress for this long is abandoned, on network file systems; on disks after three times as long, because the idle class may
    /// wait for others.
    pub patience: Duration,
    /// Reading ahead ends after waiting this long in total.
    pub longest_wait: Duration,
}

impl Limits {
    /// The limits of a machine with this much memory. The reserve is that of the budget: what a choice may fill can be read.
    pub fn of(total: Bytes) -> Self {
        Self { reserve_bytes: Rules::of(total).reserve.0, ..Self::default() }
    }
}

/// The limits of the smallest machine.
impl Default for Limits {
    fn default() -> Self {
        Self {
            reserve_bytes: Rules::of(Bytes(0)).reserve.0,
            quiet: Duration::from_secs(1),
            patience: Duration::from_secs(10),
            longest_wait: Duration::from_secs(600),
        }
    }
}

#[cfg(test)]
mod tests {
    use eke_prefetch_model::choose::{Memory, Occasion, allowance};

    use super::*;

    #[test]
    fn what_a_choice_may_fill_is_read() {
        for total_mib in [256, 512, 1024, 16_384] {
            let total = Bytes::mib(total_mib);
            let rules = Rules::of(total);
            let available = Bytes(rules.reserve.0 + (1 << 20));
            let memory = Memory { total, available, refaults_per_s: 0.0, on_battery: false };
            assert!(allowance(&memory, &rules, Occasion::Ahead).budget > Bytes(0));
            assert!(Limits::of(total).reserve_bytes <= available.0, "{total_mib} MiB");
        }
    }
}

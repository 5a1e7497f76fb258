//! Histograms of latencies, a strip of a line each.

use eke_model::histogram::{BUCKETS, Histogram, begins_ns};
use eke_model::snapshot::IoState;
use eke_model::units::Nanos;

const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Recent latencies of disks by kind of request, from the shortest to the longest: a step for each power of two. `None` without requests,
/// or where only averages are known.
pub fn strips(io: &IoState) -> Option<String> {
    let mut all = Histogram::default();
    io.latencies.iter().for_each(|kind| all.merge(&kind.late));
    let first = all.buckets.iter().position(|count| *count > 0)?;
    let last = all.buckets.iter().rposition(|count| *count > 0).unwrap_or(BUCKETS - 1);
    let kinds = io.latencies.iter().filter(|kind| kind.late.has_buckets());
    let strips: Vec<String> = kinds
        .map(|kind| format!("{} [{}]", kind.operation, strip(&kind.late.buckets[first..=last])))
        .collect();
    Some(format!("{} to {}: {}", Nanos(begins_ns(first)), Nanos(begins_ns(last + 1)), strips.join(" ")))
}

/// The most has the highest step; what is there at all has one.
fn strip(buckets: &[u64]) -> String {
    let most = buckets.iter().copied().max().unwrap_or(0).max(1);
    let step = |count: u64| (u128::from(count) * STEPS.len() as u128).div_ceil(u128::from(most)) as usize;
    buckets
        .iter()
        .map(|count| step(*count).checked_sub(1).map_or(' ', |i| STEPS[i.min(STEPS.len() - 1)]))
        .collect()
}

#[cfg(test)]
mod tests {
    use eke_model::snapshot::IoLatency;

    use super::*;

    fn kind(operation: &str, latencies_us: &[u64]) -> IoLatency {
        let mut late = Histogram::default();
        latencies_us.iter().for_each(|us| late.record(us * 1_000));
        IoLatency { operation: operation.into(), late, ..IoLatency::default() }
    }

    #[test]
    fn all_kinds_have_the_same_ends() {
        let latencies =
            vec![kind("read", &[100, 100, 100, 100, 300]), kind("discard", &[]), kind("flush", &[1_000])];
        let io = IoState { latencies, ..IoState::default() };
        assert_eq!(strips(&io).as_deref(), Some("65.5 µs to 1.05 ms: read [█ ▂ ] flush [   █]"));
    }

    #[test]
    fn averages_and_nothing_have_none() {
        let average = IoLatency { late: Histogram::of_average(3, 9), ..IoLatency::default() };
        assert_eq!(strips(&IoState { latencies: vec![average], ..IoState::default() }), None);
        assert_eq!(strips(&IoState::default()), None);
    }

    #[test]
    fn small_parts_are_visible() {
        assert_eq!(strip(&[1, 0, u64::MAX, u64::MAX / 2]), "▁ █▄");
    }
}

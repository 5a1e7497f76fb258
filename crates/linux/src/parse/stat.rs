//! `/proc/stat` (proc_stat(5)): CPU time of the machine in clock ticks.

/// Total ticks, and idle ticks (with iowait), of all CPUs.
pub fn machine(text: &str) -> (u64, u64) {
    let line = text.lines().find_map(|l| l.strip_prefix("cpu ")).unwrap_or_default();
    // guest times are part of user and nice
    let ticks: Vec<u64> = line.split_whitespace().take(8).map(|n| n.parse().unwrap_or(0)).collect();
    let sum = |ticks: &[u64]| ticks.iter().fold(0, |all: u64, n| all.saturating_add(*n));
    (sum(&ticks), sum(ticks.get(3..5.min(ticks.len())).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_is_too_large() {
        assert_eq!(machine("cpu  4 18446744073709551615\n"), (u64::MAX, 0));
    }

    #[test]
    fn guests_and_single_processors_do_not_count_twice() {
        assert_eq!(machine("cpu  10 1 5 100 4 0 2 0 7 0\ncpu0 1 1 1 1\n"), (122, 104));
    }
}

//! `/proc/stat` (proc_stat(5)): CPU time of the machine in clock ticks.

/// Total and idle (with iowait) ticks of all CPUs.
pub fn machine(text: &str) -> (u64, u64) {
    let line = text.lines().find_map(|l| l.strip_prefix("cpu ")).unwrap_or_default();
    // guest times are already in user and nice
    let ticks: Vec<u64> = line.split_whitespace().take(8).map(|n| n.parse().unwrap_or(0)).collect();
    let idle = ticks.iter().skip(3).take(2).sum();
    (ticks.iter().sum(), idle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_and_single_processors_do_not_count_twice() {
        assert_eq!(machine("cpu  10 1 5 100 4 0 2 0 7 0\ncpu0 1 1 1 1\n"), (122, 104));
    }
}

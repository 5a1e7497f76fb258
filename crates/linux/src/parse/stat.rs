//! `/proc/stat` and `/proc/PID/stat` (proc_stat(5), proc_pid_stat(5)): CPU time in clock ticks.

/// Total and idle (with iowait) ticks of all CPUs.
pub fn machine(text: &str) -> (u64, u64) {
    let line = text.lines().find_map(|l| l.strip_prefix("cpu ")).unwrap_or_default();
    // guest times are already in user and nice
    let ticks: Vec<u64> = line.split_whitespace().take(8).map(|n| n.parse().unwrap_or(0)).collect();
    let idle = ticks.iter().skip(3).take(2).sum();
    (ticks.iter().sum(), idle)
}

/// A process's name and its own user and system ticks.
pub fn process(text: &str) -> Option<(&str, u64)> {
    let (before, after) = text.rsplit_once(')')?;
    let name = before.split_once('(')?.1;
    let mut fields = after.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((name, user.saturating_add(system)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_machine_and_a_process_with_a_nasty_name() {
        assert_eq!(machine("cpu  10 1 5 100 4 0 2 0 7 0\ncpu0 1 1 1 1\n"), (122, 104));
        let text = "42 (a) b (c) S 1 1 1 0 -1 4 0 0 0 0 30 12 0 0 20 0 1 0 1 1 1";
        assert_eq!(process(text), Some(("a) b (c", 42)));
        assert_eq!(process("garbage"), None);
    }
}

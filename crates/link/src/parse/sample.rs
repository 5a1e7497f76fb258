//! CPU counters of a process and its machine, from the lines of `ends.sh`.

use eke_linux::parse::{process_stat, stat};
use serde::Serialize;

/// Counters at one moment; `None` for those that the machine does not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sample {
    /// CPU time of the ssh process, in nanoseconds: `/proc/PID/schedstat` (CONFIG_SCHED_INFO), or ticks of `/proc/PID/stat`.
    pub cpu_ns: Option<u64>,
    /// Busy ticks of all CPUs, and all their ticks.
    pub machine_ticks: Option<(u64, u64)>,
    /// The time for which a CPU quota throttled its group, in nanoseconds (`cpu.stat`, cgroup v1 and v2).
    pub throttled_ns: Option<u64>,
}

/// CPU use between two samples.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Used {
    /// CPU seconds of the ssh process.
    pub cpu_s: Option<f64>,
    /// The busy share of all CPUs by any process, 0 to 1.
    pub machine_busy: Option<f64>,
    /// Seconds for which a CPU quota throttled it.
    pub throttled_s: Option<f64>,
}

/// `USER_HZ` on all machines that eke supports.
const TICK_NS: u64 = 10_000_000;

/// Reads one sample.
pub fn sample(text: &str) -> Sample {
    let mut found = Sample::default();
    for (key, rest) in text.lines().filter_map(|l| l.split_once(' ')) {
        match key {
            "schedstat" => found.cpu_ns = number(rest.split_whitespace().next()).or(found.cpu_ns),
            "stat" => {
                found.cpu_ns = found
                    .cpu_ns
                    .or_else(|| process_stat::parse(rest).map(|s| s.ticks().saturating_mul(TICK_NS)))
            }
            "machine" => found.machine_ticks = machine_ticks(rest),
            "throttle" => {
                if let Some(ns) = throttled(rest) {
                    found.throttled_ns = Some(found.throttled_ns.unwrap_or(0).saturating_add(ns));
                }
            }
            _ => {}
        }
    }
    found
}

fn number(word: Option<&str>) -> Option<u64> {
    word?.parse().ok()
}

/// Busy ticks and all ticks, from the line `cpu ...` of `/proc/stat`.
fn machine_ticks(line: &str) -> Option<(u64, u64)> {
    let (all, idle) = stat::machine(line);
    (all > 0).then(|| (all.saturating_sub(idle), all))
}

/// `throttled_time` is in nanoseconds (cgroup v1, sched-bwc.rst), `throttled_usec` in microseconds (cgroup-v2.rst).
fn throttled(line: &str) -> Option<u64> {
    let (key, value) = line.split_once(' ')?;
    let value: u64 = value.trim().parse().ok()?;
    match key {
        "throttled_time" => Some(value),
        "throttled_usec" => Some(value.saturating_mul(1000)),
        _ => None,
    }
}

/// The difference of two samples, to be summed over many of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    cpu_ns: Option<u64>,
    machine_ticks: Option<(u64, u64)>,
    throttled_ns: Option<u64>,
}

impl Default for Spent {
    /// Zero.
    fn default() -> Self {
        Self { cpu_ns: Some(0), machine_ticks: Some((0, 0)), throttled_ns: Some(0) }
    }
}

impl std::ops::AddAssign for Spent {
    /// `None` in either is `None` in the sum.
    fn add_assign(&mut self, other: Self) {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        self.cpu_ns = sum(self.cpu_ns, other.cpu_ns);
        self.throttled_ns = sum(self.throttled_ns, other.throttled_ns);
        let ticks = self.machine_ticks.zip(other.machine_ticks);
        self.machine_ticks = ticks.map(|(a, b)| (a.0.saturating_add(b.0), a.1.saturating_add(b.1)));
    }
}

impl Sample {
    /// The difference since `before`.
    pub fn since(&self, before: &Self) -> Spent {
        let delta = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        let ticks = self.machine_ticks.zip(before.machine_ticks);
        Spent {
            cpu_ns: delta(self.cpu_ns, before.cpu_ns),
            machine_ticks: ticks
                .map(|(now, then)| (now.0.saturating_sub(then.0), now.1.saturating_sub(then.1))),
            throttled_ns: delta(self.throttled_ns, before.throttled_ns),
        }
    }
}

impl Spent {
    /// In seconds and shares.
    pub fn used(&self) -> Used {
        let seconds = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e9);
        let busy = self.machine_ticks.filter(|(_, all)| *all > 0).map(|(busy, all)| busy as f64 / all as f64);
        Used { cpu_s: seconds(self.cpu_ns), machine_busy: busy, throttled_s: seconds(self.throttled_ns) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "schedstat 5000000 1 1\nstat 7 (sshd: a) b) S 1 1 1 0 -1 4 0 0 0 0 30 12 0 0 20 0 1 0 9 1 1\nmachine cpu  10 0 10 80 0 0 0 0 0 0\nthrottle nr_throttled 3\nthrottle throttled_time 1000000\n";

    #[test]
    fn the_difference_of_two_samples_is_the_cpu_use() {
        let before = sample(BEFORE);
        let after = sample(
            "schedstat 1005000000 1 1\nmachine cpu  40 0 10 150 0 0 0 0 0 0\nthrottle throttled_usec 501000\n",
        );
        let mut spent = Spent::default();
        spent += after.since(&before);
        spent += after.since(&after);
        let used = spent.used();
        assert_eq!((used.cpu_s, used.machine_busy, used.throttled_s), (Some(1.0), Some(0.3), Some(0.5)));
    }

    #[test]
    fn without_schedstat_there_are_ticks_and_without_proc_nothing() {
        let ticks = sample(&BEFORE.replacen("schedstat 5000000 1 1", "schedstat ", 1));
        assert_eq!(ticks.cpu_ns, Some(420_000_000));
        assert_eq!(sample("schedstat \nstat \nmachine \n"), Sample::default());
        assert_eq!(Sample::default().since(&ticks).used(), Used::default());
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read(text: String) {
            for key in ["schedstat", "stat", "machine", "throttle"] {
                let _ = sample(&format!("{key} {text}"));
            }
        }
    }
}

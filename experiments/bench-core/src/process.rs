//! CPU time and memory of one process, from the kernel's text. Pure.

use eke_linux::parse;
use eke_model::units::{Bytes, MIB, Nanos};

/// One clock tick. `USER_HZ` is 100 on every architecture that eke supports.
const TICK: Nanos = Nanos(10_000_000);

/// A size in `/proc/PID/status` or `/proc/PID/smaps_rollup` (Linux 4.14), in MiB. `None` if the line is missing.
pub fn mib(text: &str, key: &str) -> Option<f64> {
    parse::meminfo::field(text, key).map(|Bytes(n)| n as f64 / MIB as f64)
}

/// The CPU time until now. `/proc/PID/schedstat` has nanoseconds (CONFIG_SCHED_INFO), `/proc/PID/stat` has clock ticks.
pub fn cpu_time(schedstat: &str, stat: &str) -> Option<Nanos> {
    let exact = schedstat.split_whitespace().next().and_then(|n| n.parse().ok()).map(Nanos);
    exact.or_else(|| parse::process_stat::parse(stat).map(|stat| Nanos(stat.ticks().saturating_mul(TICK.0))))
}

/// The share of one CPU between two readings, in percent.
pub fn cpu_percent(before: Nanos, after: Nanos, elapsed: Nanos) -> f64 {
    100.0 * after.0.saturating_sub(before.0) as f64 / elapsed.0.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_cpu_time_of_a_process() {
        let status = "Name:\teke-agent\nVmHWM:\t    4096 kB\nVmRSS:\t    3584 kB\n";
        assert_eq!(
            (mib(status, "VmRSS"), mib(status, "VmHWM"), mib(status, "Pss")),
            (Some(3.5), Some(4.0), None)
        );
        let stat = "42 (eke-agent) S 1 1 1 0 -1 4 0 0 0 0 30 12 0 0 20 0 1 0 1 1 1";
        assert_eq!(cpu_time("5502445 1639665 11\n", stat), Some(Nanos(5_502_445)));
        assert_eq!(cpu_time("", stat), Some(Nanos(420_000_000)));
        assert_eq!(cpu_time("", ""), None);
        assert_eq!(cpu_percent(Nanos(0), Nanos::micros(5_000), Nanos(10_000_000_000)), 0.05);
    }
}

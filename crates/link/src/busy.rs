//! Whether a machine has something to do: a measurement would disturb it, and would measure that instead of the link. Pure.

/// What [`why_busy`] reads on the far end, one after the other.
pub const COMMAND: &str = "cat /proc/loadavg; nproc 2>/dev/null || grep -c ^processor /proc/cpuinfo; cat /proc/pressure/cpu /proc/pressure/memory /proc/pressure/io 2>/dev/null; :";

/// Running programs for each CPU, over the last minute. A desktop that nobody uses is below a tenth; one busy program is one.
const MOST_LOAD: f64 = 0.5;
/// Percent of the last ten seconds in which something waited (Documentation/accounting/psi.rst).
const MOST_PRESSURE: f64 = 10.0;

/// Why the machine whose [`COMMAND`] printed this is busy; `None` if it is idle, or says nothing.
#[must_use]
pub fn why_busy(text: &str) -> Option<String> {
    let mut lines = text.lines();
    let load: Option<f64> = lines.next().and_then(|line| line.split(' ').next()?.parse().ok());
    let cpus: f64 = lines.next().and_then(|line| line.trim().parse().ok()).unwrap_or(1.0);
    if let Some(load) = load.filter(|load| *load > MOST_LOAD * cpus.max(1.0)) {
        return Some(format!("its load is {load:.1} on {cpus:.0} CPUs"));
    }
    let names = ["CPU time", "memory", "disks"];
    let pressures = lines.filter(|line| line.starts_with("some ")).zip(names);
    for (line, name) in pressures {
        let percent = line.split(' ').find_map(|word| word.strip_prefix("avg10=")?.parse::<f64>().ok());
        if let Some(percent) = percent.filter(|percent| *percent > MOST_PRESSURE) {
            return Some(format!("programs wait for {name} {percent:.0} % of the time"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::why_busy;

    const IDLE: &str = "0.05 0.10 0.12 1/123 4567\n2\nsome avg10=0.00 avg60=1.00 avg300=0.00 total=1\nsome avg10=0.00 total=1\n\
        full avg10=0.00 total=1\nsome avg10=2.50 avg60=0.00 total=7\nfull avg10=0.00 total=1\n";

    #[test]
    fn an_idle_machine_is_measured() {
        assert_eq!(why_busy(IDLE), None);
        assert_eq!(why_busy("0.9 0 0 1/1 1\n2\n"), None, "without PSI, less than one program on two CPUs");
        assert_eq!(why_busy(""), None, "not Linux");
    }

    #[test]
    fn load_and_pressure_make_it_busy() {
        let busy = |text: &str| why_busy(text).unwrap();
        assert_eq!(busy(&IDLE.replacen("0.05", "1.80", 1)), "its load is 1.8 on 2 CPUs");
        assert_eq!(
            busy(&IDLE.replace("avg10=2.50", "avg10=31.00")),
            "programs wait for disks 31 % of the time"
        );
    }
}

//! `/proc/pressure/*` (Documentation/accounting/psi.rst, Linux 4.20).

use eke_model::sample::Pressure;

/// Parses both lines; `None` without a `some` line.
pub fn parse(text: &str) -> Option<Pressure> {
    let line = |kind: &str| text.lines().find_map(|l| l.strip_prefix(kind)?.strip_prefix(' '));
    let some = line("some")?;
    let full = line("full").unwrap_or_default();
    Some(Pressure {
        some_avg10: percent(some, "avg10"),
        some_avg60: percent(some, "avg60"),
        some_total_us: number(some, "total").unwrap_or_default(),
        full_avg10: percent(full, "avg10"),
        full_avg60: percent(full, "avg60"),
        full_total_us: number(full, "total").unwrap_or_default(),
    })
}

/// JSON has no other numbers than finite ones.
fn percent(line: &str, key: &str) -> f64 {
    number(line, key).filter(|percent: &f64| percent.is_finite()).unwrap_or_default()
}

fn number<T: std::str::FromStr>(line: &str, key: &str) -> Option<T> {
    line.split_whitespace().find_map(|w| w.strip_prefix(key)?.strip_prefix('='))?.parse().ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn reads_both_lines() {
        let p = super::parse("some avg10=1.50 avg60=0.20 avg300=0.00 total=12345\nfull avg10=0.50 avg60=0.25 avg300=0.00 total=99\n").unwrap();
        assert_eq!((p.some_avg10, p.some_total_us, p.full_avg10, p.full_total_us), (1.5, 12345, 0.5, 99));
        assert_eq!((p.some_avg60, p.full_avg60), (0.2, 0.25));
        assert_eq!(
            super::parse("some avg10=nan avg60=inf").map(|p| (p.some_avg10, p.some_avg60)),
            Some((0.0, 0.0))
        );
        assert_eq!(super::parse("nonsense"), None);
    }
}

//! How long tasks waited for a CPU.

/// Microseconds in which some task waited: `total` of the line `some` of `/proc/pressure/cpu` (Documentation/accounting/psi.rst, since
/// 4.20).
pub fn some_us(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.split_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_some_is_read() {
        let text = "some avg10=1.00 avg60=0.00 avg300=0.00 total=1234567\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n";
        assert_eq!((some_us(text), some_us("full total=3"), some_us("")), (Some(1_234_567), None, None));
    }
}

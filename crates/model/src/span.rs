//! Parses durations.

use std::time::Duration;

/// A text that is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not a time {}: give a number with ms, s, m or h, for example {example}", self.range())]
pub struct BadSpan {
    text: String,
    least_ms: u64,
    most_ms: u64,
    example: &'static str,
}

impl BadSpan {
    fn range(&self) -> String {
        format!("from {} ms to {} h", self.least_ms, self.most_ms / 3_600_000)
    }
}

/// The time between two samples: 10 ms to one hour.
///
/// # Errors
/// The text is not a duration within these bounds.
pub fn every(text: &str) -> Result<Duration, BadSpan> {
    parse(text, 10, 3_600_000, "100ms")
}

/// The length of a recording: 100 ms to 1000 hours.
///
/// # Errors
/// The text is not a duration within these bounds.
pub fn length(text: &str) -> Result<Duration, BadSpan> {
    parse(text, 100, 3_600_000_000, "60s")
}

fn parse(text: &str, least_ms: u64, most_ms: u64, example: &'static str) -> Result<Duration, BadSpan> {
    let bad = || BadSpan { text: text.to_owned(), least_ms, most_ms, example };
    let trimmed = text.trim();
    let unit_at = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(unit_at);
    let factor = match unit.trim() {
        "ms" => 1.0,
        "s" | "" => 1e3,
        "m" | "min" => 6e4,
        "h" => 3.6e6,
        _ => return Err(bad()),
    };
    let ms = number.parse::<f64>().map_err(|_| bad())? * factor;
    if ms >= least_ms as f64 && ms <= most_ms as f64 {
        Ok(Duration::from_millis(ms.round() as u64))
    } else {
        Err(bad())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_limits() {
        assert_eq!(every("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!(every("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(length("2m"), Ok(Duration::from_secs(120)));
        for bad in ["", "1ms", "soon", "-1s", "1e9s", "99999999h", "nan", ".", "1.2.3s"] {
            assert!(every(bad).is_err(), "{bad}");
        }
        let error = every("0").unwrap_err().to_string();
        assert_eq!(
            error,
            "\"0\" is not a time from 10 ms to 1 h: give a number with ms, s, m or h, for example 100ms"
        );
    }
}

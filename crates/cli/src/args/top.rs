//! `eke top`.

use std::time::Duration;

use clap::Args;

/// `eke top`.
#[derive(Debug, Args)]
pub struct Top {
    /// Time between two refreshes (500ms to 1h)
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = every)]
    pub every: Duration,
    /// Draw with ASCII only (default on the Linux console and in locales other than UTF-8)
    #[arg(long)]
    pub ascii: bool,
}

/// The agent samples the machine at most twice a second.
const LEAST: Duration = Duration::from_millis(500);

fn every(text: &str) -> Result<Duration, String> {
    match eke_model::span::every(text) {
        Ok(span) if span >= LEAST => Ok(span),
        _ => Err(format!(
            "\"{text}\" is not a time from 500 ms to 1 h: give a number with ms, s, m or h, for example 5s"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_has_bounds() {
        assert_eq!(every("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(every("500ms"), Ok(LEAST));
        for wrong in ["499ms", "2h", "often"] {
            assert!(every(wrong).unwrap_err().contains("500 ms to 1 h"), "{wrong}");
        }
    }
}

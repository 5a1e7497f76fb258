//! A report from the text of a file, which is foreign.

use serde_json::{Value, error::Category};

use super::Report;

/// Why a text is not a report.
#[derive(Debug, thiserror::Error)]
pub enum NotAReport {
    /// It ends before it is whole.
    #[error("it is cut short: {0}")]
    CutShort(serde_json::Error),
    /// It is not JSON.
    #[error("it is not JSON: {0}")]
    NotJson(serde_json::Error),
    /// It is JSON of something else.
    #[error("it is JSON, but not the result of an `eke bench` experiment: {0}")]
    Foreign(String),
    /// It has no rows.
    #[error("it is the result of an experiment, but has no rows")]
    Empty,
}

/// Parses the text that `--output` wrote.
///
/// # Errors
/// [`NotAReport`], with the line if it is known.
pub fn parse(text: &str) -> Result<Report, NotAReport> {
    let value: Value = serde_json::from_str(text).map_err(|e| match e.classify() {
        Category::Eof => NotAReport::CutShort(e),
        _ => NotAReport::NotJson(e),
    })?;
    let report: Report = serde_json::from_value(value).map_err(|e| NotAReport::Foreign(e.to_string()))?;
    if report.rows.is_empty() { Err(NotAReport::Empty) } else { Ok(report) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_report_is_refused_with_the_reason() {
        let machine = r#"{"kernel":"6.18","architecture":"x86_64","cpus":2,"ram":1}"#;
        let empty = format!(r#"{{"experiment":"paging","machine":{machine},"rows":[]}}"#);
        for (text, part) in [
            ("", "cut short"),
            (&empty[..40], "cut short"),
            ("SQLite format 3", "not JSON"),
            ("[1]", "not the result"),
            (r#"{"experiment":"paging"}"#, "missing field `machine`"),
            (&empty, "no rows"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}

//! A report from the text of a file, which may be anything.

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
    /// It has no figures.
    #[error("it is the result of an experiment, but there is no figure in it")]
    Empty,
}

/// What `--output` wrote.
///
/// # Errors
/// [`NotAReport`], with the line where that is known.
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
    fn what_is_no_report_says_why() {
        let machine = r#"{"kernel":"6.18","architecture":"x86_64","cpus":2,"ram":1}"#;
        let empty = format!(r#"{{"experiment":"paging","machine":{machine},"rows":[]}}"#);
        for (text, part) in [
            ("", "cut short"),
            (&empty[..40], "cut short"),
            ("SQLite format 3", "not JSON"),
            ("[1]", "not the result"),
            (r#"{"experiment":"paging"}"#, "missing field `machine`"),
            (&empty, "no figure"),
        ] {
            let said = parse(text).unwrap_err().to_string();
            assert!(said.contains(part), "{text}: {said}");
        }
    }
}

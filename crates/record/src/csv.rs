//! A recording as CSV (RFC 4180): a line for each sample, with its step.

use crate::load::Recording;
use crate::row::Row;

/// The whole table; `step` is the name of the last mark before the sample.
pub fn csv(recording: &Recording) -> String {
    let mut out = format!("time_ms,{},step\n", Row::COLUMNS.join(","));
    for row in &recording.rows {
        let begun = recording.marks.partition_point(|m| m.time_ms <= row.time_ms);
        let step = begun.checked_sub(1).and_then(|i| recording.marks.get(i)).map_or("", |m| m.name.as_str());
        let values = row.values().into_iter().map(|v| v.map_or(String::new(), |n| n.to_string()));
        let cells: Vec<String> = std::iter::once(row.time_ms.to_string()).chain(values).collect();
        out += &format!("{},{}\n", cells.join(","), quoted(step));
    }
    out
}

/// Quoted if necessary, and escaped so that a spreadsheet does not take it for a formula.
fn quoted(text: &str) -> String {
    let text = if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text.to_owned() };
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Mark;

    #[test]
    fn names_are_quoted_and_missing_values_are_empty() {
        let row = |time_ms| Row { time_ms, free_bytes: Some(7), ..Row::default() };
        let marks = vec![Mark { time_ms: 100, name: "open \"B\", page 1".into() }];
        let text = csv(&Recording { rows: vec![row(0), row(100)], marks, ..Recording::default() });
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("time_ms,free_bytes,") && lines[0].ends_with(",step"));
        assert!(lines[1].starts_with("0,7,,") && lines[1].ends_with(",,"));
        assert!(lines[2].ends_with(",\"open \"\"B\"\", page 1\""));
        let columns = |line: &str| line.split(',').count();
        assert_eq!(columns(lines[0]), columns(lines[1]));
        assert_eq!(quoted("=cmd()"), "'=cmd()");
    }
}

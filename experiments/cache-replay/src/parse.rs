//! Recorded traces: one line per request, with its key and its weight in bytes, both numbers.

use crate::Request;

/// A line that is not a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the trace is \"{text}\": give a key and a weight in bytes, as in \"4711 24576\"")]
pub struct BadLine {
    line: usize,
    text: String,
}

/// The requests of a trace. Skips empty lines and lines that begin with #.
///
/// # Errors
/// The first line that is not a request.
pub fn parse(text: &str) -> Result<Vec<Request>, BadLine> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let meant = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    meant.map(|(line, text)| request(text).ok_or_else(|| BadLine { line, text: text.to_owned() })).collect()
}

fn request(line: &str) -> Option<Request> {
    let (key, weight) = line.split_once(char::is_whitespace)?;
    Some(Request { key: key.parse().ok()?, weight: weight.trim().parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_lines_of_numbers() {
        let requests = parse("# recorded\n12 4096\n\n7\t100\n").unwrap();
        assert_eq!(requests, [Request { key: 12, weight: 4096 }, Request { key: 7, weight: 100 }]);
        assert_eq!(parse("12 4096\n13\n"), Err(BadLine { line: 2, text: "13".into() }));
        assert!(parse("12 -1").is_err());
    }
}

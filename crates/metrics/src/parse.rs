//! A page of metrics as data: what [`crate::text`] writes, in either format, of an eke of any version.

use std::str::Chars;

/// One line of a page.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// With its suffix.
    pub name: String,
    /// Names and values, in their order.
    pub labels: Vec<(String, String)>,
    /// In the metric's unit.
    pub value: f64,
}

impl Row {
    /// The value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(label, _)| label == name).map(|(_, value)| value.as_str())
    }
}

/// All samples. A line that is none is skipped: the page comes from another machine.
pub fn rows(text: &str) -> Vec<Row> {
    text.lines().filter(|line| !line.starts_with('#')).filter_map(row).collect()
}

fn row(line: &str) -> Option<Row> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    if name.is_empty() || !name.chars().all(is_name) {
        return None;
    }
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        (labels, rest) = self::labels(inside)?;
    }
    // A time stamp may follow.
    let value = rest.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Row { name: name.to_owned(), labels, value })
}

/// The labels, and what follows the closing brace.
fn labels(mut text: &str) -> Option<(Vec<(String, String)>, &str)> {
    let mut labels = Vec::new();
    loop {
        if let Some(rest) = text.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, after) = text.split_once("=\"")?;
        let mut chars = after.chars();
        labels.push((name.to_owned(), quoted(&mut chars)?));
        let rest = chars.as_str();
        text = rest.strip_prefix(',').unwrap_or(rest);
    }
}

/// Reads up to the closing quote. Both formats have three escapes.
fn quoted(chars: &mut Chars<'_>) -> Option<String> {
    let mut value = String::new();
    loop {
        match chars.next()? {
            '"' => return Some(value),
            '\\' => match chars.next()? {
                'n' => value.push('\n'),
                c => value.push(c),
            },
            c => value.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;
    use crate::text::tests::full;
    use crate::text::{Format, text};

    #[test]
    fn what_is_written_is_read() {
        let reading = full();
        for format in [Format::OpenMetrics, Format::Prometheus] {
            let found = rows(&text(&reading, format));
            let mut read = found.iter();
            for metric in table::all() {
                for sample in (metric.get)(&reading) {
                    let row = read.next().unwrap();
                    assert_eq!(row.name, format!("{}{}{}", metric.name, metric.kind.suffix(), sample.part));
                    assert!(row.value == sample.value || sample.value.is_nan(), "{row:?}");
                    assert_eq!(row.labels.len(), sample.labels.len(), "{row:?}");
                }
            }
            assert_eq!(read.next(), None);
        }
    }

    #[test]
    fn labels_lose_their_escapes() {
        let row = &rows("a{b=\"c \\\"d\\\"\\\\\\n\",e=\"}\"} 1.5 1700000000\n")[0];
        assert_eq!((row.label("b"), row.label("e"), row.value), (Some("c \"d\"\\\n"), Some("}"), 1.5));
    }

    #[test]
    fn lines_that_are_no_samples_are_skipped() {
        let text = "# EOF\n\na\na b\na{ 1\na{b} 1\na{b=\"c} 1\n{} 1\n<html> 1\nok 2\n";
        assert_eq!(rows(text).iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["ok"]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read(text in "(?s)[a{}=\", \\\\\n1]{0,60}") {
            let _ = rows(&text);
        }
    }
}

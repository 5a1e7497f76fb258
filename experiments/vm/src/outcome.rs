//! The result of a run, and the parsing of the machine's output. Pure.

/// The result of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The script's output (standard output and error), with plain line ends.
    pub output: String,
    /// The console: the kernel's and init's messages, to diagnose failures.
    pub console: String,
    /// The exit status of the script.
    pub status: i32,
    /// From QEMU's start to its end, on the host's clock.
    pub seconds: f64,
}

/// Separates the script's output from its status; `None` without the mark.
pub(super) fn split_status(port: &str, mark: &str) -> Option<(String, i32)> {
    let (output, rest) = port.rsplit_once(&format!("\n{mark} "))?;
    let status = rest.lines().next()?.trim().parse().ok()?;
    Some((output.to_owned(), status))
}

/// Text that arrives in pieces, as lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    /// Takes a piece; returns the lines that are complete now, cleaned.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<String> {
        self.rest.extend_from_slice(bytes);
        let Some(last) = self.rest.iter().rposition(|byte| *byte == b'\n') else { return Vec::new() };
        let whole: Vec<u8> = self.rest.drain(..=last).collect();
        clean(&whole).lines().map(str::to_owned).collect()
    }
}

/// Converts text from a serial port to UTF-8 with plain line ends.
pub(super) fn clean(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\r', "")
}

#[cfg(test)]
mod tests {
    use super::{Lines, clean, split_status};

    #[test]
    fn the_status_follows_the_mark() {
        let port = clean(b"one\r\ntwo\r\n\r\n@m-1 3\r\n");
        assert_eq!(split_status(&port, "@m-1"), Some(("one\ntwo\n".into(), 3)));
    }

    #[test]
    fn an_output_without_a_line_end_or_without_text_is_unchanged() {
        assert_eq!(split_status("two\n@m 0\n", "@m"), Some(("two".into(), 0)));
        assert_eq!(split_status("\n@m 0\n", "@m"), Some((String::new(), 0)));
    }

    #[test]
    fn lines_are_returned_when_complete() {
        let mut lines = Lines::default();
        assert_eq!(lines.take(b"one\r\ntw"), ["one"]);
        assert_eq!(lines.take(b"o"), [""; 0]);
        assert_eq!(lines.take(b"\n\nthree\n\xff"), ["two", "", "three"]);
    }

    #[test]
    fn a_missing_or_partial_mark_is_no_status() {
        assert_eq!(split_status("one\n", "@m"), None);
        assert_eq!(split_status("one\n@m ", "@m"), None);
    }
}

//! What a machine said, taken apart. Pure.

/// What came of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What the script printed (standard output and error), with plain line ends.
    pub output: String,
    /// The console: the kernel's and init's messages, for when something went wrong.
    pub console: String,
    /// The exit status of the script.
    pub status: i32,
    /// From QEMU's start to its end, on the host's clock.
    pub seconds: f64,
}

/// Takes the script's output and its status apart; `None` when the mark did not come.
pub(super) fn split_status(port: &str, mark: &str) -> Option<(String, i32)> {
    let (output, rest) = port.rsplit_once(&format!("\n{mark} "))?;
    let status = rest.lines().next()?.trim().parse().ok()?;
    Some((output.to_owned(), status))
}

/// A text that grows, line by line.
#[derive(Debug, Default)]
pub(super) struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    /// Takes what came; gives the lines that are whole by now, cleaned.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<String> {
        self.rest.extend_from_slice(bytes);
        let Some(last) = self.rest.iter().rposition(|byte| *byte == b'\n') else { return Vec::new() };
        let whole: Vec<u8> = self.rest.drain(..=last).collect();
        clean(&whole).lines().map(str::to_owned).collect()
    }
}

/// Text from a serial port: valid, and with plain line ends.
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
    fn an_output_without_a_line_end_or_with_nothing_is_kept_as_it_is() {
        assert_eq!(split_status("two\n@m 0\n", "@m"), Some(("two".into(), 0)));
        assert_eq!(split_status("\n@m 0\n", "@m"), Some((String::new(), 0)));
    }

    #[test]
    fn lines_come_when_they_are_whole() {
        let mut lines = Lines::default();
        assert_eq!(lines.take(b"one\r\ntw"), ["one"]);
        assert_eq!(lines.take(b"o"), [""; 0]);
        assert_eq!(lines.take(b"\n\nthree\n\xff"), ["two", "", "three"]);
    }

    #[test]
    fn a_missing_or_torn_mark_is_no_status() {
        assert_eq!(split_status("one\n", "@m"), None);
        assert_eq!(split_status("one\n@m ", "@m"), None);
    }
}

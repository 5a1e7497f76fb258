//! All output of a verb. Any user can choose names of programs, files, disks and mounts, and a terminal obeys control characters in them:
//! this module escapes them. A verb that draws on the terminal itself (`run`, `top`, progress) passes foreign text through
//! `eke_model::text`.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

use eke_model::text::{harmless, one_line};
use serde_json::Value;

/// The first error of standard output.
static LOST: OnceLock<String> = OnceLock::new();

/// Prints to standard output. An error does not stop a verb half-way; [`lost`] has it at the end.
pub fn print(text: Arguments<'_>) {
    note(io::stdout().write_all(harmless(&text.to_string()).as_bytes()));
}

/// Why something that was printed did not arrive, such as a full disk.
pub fn lost() -> Option<&'static str> {
    note(io::stdout().flush());
    LOST.get().map(String::as_str)
}

/// A reader that is gone (`eke plan | head`) has read enough.
fn note(written: io::Result<()>) {
    match written {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            let _ = LOST.set(e.to_string());
        }
        _ => {}
    }
}

/// The columns of standard output, if it is a terminal.
pub fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Text whose lines fit into these columns; what is folded is indented. A file or a pipe has no columns: programs read lines.
pub fn folded(text: &str, columns: Option<usize>, indent: usize) -> String {
    let Some(columns) = columns else { return text.to_owned() };
    let rest = " ".repeat(indent);
    let options = textwrap::Options::new(columns.max(indent + 8)).subsequent_indent(&rest);
    text.split('\n').map(|line| textwrap::fill(line, &options)).collect::<Vec<_>>().join("\n")
}

/// Prints a line to standard error.
pub fn print_error(text: Arguments<'_>) {
    let _ = std::io::stderr().write_all(format!("{}\n", harmless(&text.to_string())).as_bytes());
}

/// A message with all lines but the first indented, so that a name with line ends cannot imitate a line of eke's.
pub fn indented(message: &str) -> String {
    message.trim_end().replace('\n', "\n  ")
}

/// A foreign document with line ends and control characters of all texts escaped.
pub fn one_lined(document: Value) -> Value {
    match document {
        Value::String(text) => Value::String(one_line(&text).into_owned()),
        Value::Array(all) => Value::Array(all.into_iter().map(one_lined).collect()),
        Value::Object(all) => {
            Value::Object(all.into_iter().map(|(name, value)| (name, one_lined(value))).collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_lines_stays_within_its_message() {
        assert_eq!(indented("cannot open a\nhint: run this\n"), "cannot open a\n  hint: run this");
    }

    #[test]
    fn what_is_longer_than_a_terminal_is_folded_between_words() {
        let text = "memory      124 MiB available, kernel 70 MiB\nshort\n";
        assert_eq!(
            folded(text, Some(32), 12),
            "memory      124 MiB available,\n            kernel 70 MiB\nshort\n"
        );
        assert_eq!(folded(text, None, 12), text);
    }
}

//! All output of a verb. Any user can choose names of programs, files, disks and mounts, and a terminal obeys control characters in them:
//! this module escapes them. A verb that draws on the terminal itself (`run`, `top`, progress) passes foreign text through
//! `eke_model::text`.

use std::fmt::Arguments;
use std::io::Write;

use eke_model::text::{harmless, one_line};
use serde_json::Value;

/// Prints to standard output. Ignores errors: a verb must not stop half-way because its reader is gone (`eke plan | head`).
pub fn print(text: Arguments<'_>) {
    let _ = std::io::stdout().write_all(harmless(&text.to_string()).as_bytes());
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
}

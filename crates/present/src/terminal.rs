//! The border to the terminal. Names of programs, files, disks and mounts are whoever's made them, and a terminal obeys what is in
//! them; so all that a verb prints goes through here, and nothing that a terminal obeys comes out. A verb that draws on the terminal
//! itself (`run`, `top`, progress) hands foreign text to `eke_model::text` first.

use std::fmt::Arguments;
use std::io::Write;

use eke_model::text::{harmless, one_line};
use serde_json::Value;

/// Prints to standard output. A reader that is gone (`eke plan | head`, a closed terminal) is no reason to stop half-way.
pub fn print(text: Arguments<'_>) {
    let _ = std::io::stdout().write_all(harmless(&text.to_string()).as_bytes());
}

/// Prints a line to standard error.
pub fn print_error(text: Arguments<'_>) {
    let _ = std::io::stderr().write_all(format!("{}\n", harmless(&text.to_string())).as_bytes());
}

/// A message with its further lines indented: a name in it that has lines cannot pass for a line of ours.
pub fn indented(message: &str) -> String {
    message.trim_end().replace('\n', "\n  ")
}

/// A document of somebody else's whose texts have no lines and nothing that is obeyed.
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

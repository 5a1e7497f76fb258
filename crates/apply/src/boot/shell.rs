//! Files that a shell reads (`/etc/default/*`): changes the value of a variable in place.

use super::words;
use eke_linux::error::{Error, Result};

/// The parts of a line `NAME="value"  # comment`.
#[derive(Debug)]
struct Assignment<'a> {
    before: &'a str,
    value: &'a str,
    quote: Option<char>,
    after: &'a str,
}

impl<'a> Assignment<'a> {
    /// `None` if the line does not assign to `name`.
    fn parse(line: &'a str, name: &str) -> Result<Option<Self>> {
        let Some(at) = value_start(line, name) else { return Ok(None) };
        let (before, rest) = line.split_at(at);
        let odd = || Error::Refused(format!("`{}` is more than a value in quotation marks", line.trim()));
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let inner = quote.map_or(rest, |_| &rest[1..]);
        let end = match quote {
            Some(q) => closing(inner, q).ok_or_else(odd)?,
            None => inner.find(|c: char| c.is_whitespace() || c == ';').unwrap_or(inner.len()),
        };
        let (value, after) = inner.split_at(end);
        let after = quote.map_or(after, |_| &after[1..]);
        let plain = quote.is_some() || !value.contains(['\\', '"', '\'', '$']);
        let ends = matches!(after.trim_start().chars().next(), None | Some('#' | ';'));
        let computed = quote != Some('\'') && (value.contains('`') || value.contains("$("));
        if plain && ends && !computed { Ok(Some(Self { before, value, quote, after })) } else { Err(odd()) }
    }

    fn with(&self, value: &str) -> String {
        let quote = self.quote.unwrap_or('"');
        format!("{}{quote}{value}{quote}{}", self.before, self.after)
    }
}

fn value_start(line: &str, name: &str) -> Option<usize> {
    let body = line.trim_start();
    let body = body.strip_prefix("export ").map_or(body, str::trim_start);
    let rest = body.strip_prefix(name)?;
    let rest = rest.strip_prefix('+').unwrap_or(rest).strip_prefix('=')?;
    Some(line.len() - rest.len())
}

/// Offset of the closing quotation mark. A backslash escapes the next character only inside double quotes.
fn closing(inner: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (n, c) in inner.char_indices() {
        if c == quote && !escaped {
            return Some(n);
        }
        escaped = quote == '"' && c == '\\' && !escaped;
    }
    None
}

/// Replaces our words where any of the variables sets them. Returns the new text and the words that none sets.
///
/// # Errors
/// A value that only a shell can evaluate.
pub fn replaced(text: &str, names: &[&str], ours: &[String]) -> Result<(String, Vec<String>)> {
    let mut missing = ours.to_vec();
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let mut edited = line.to_owned();
        for name in names {
            let Some(assignment) = Assignment::parse(line, name)? else { continue };
            let (value, absent) = words::replaced(assignment.value, ours)?;
            missing.retain(|word| absent.contains(word));
            if value != assignment.value {
                edited = assignment.with(&value);
            }
        }
        out.push_str(&edited);
    }
    Ok((out, missing))
}

/// Appends `ours` to the last value of `name`; without one, adds a line with `default` and `ours`.
///
/// # Errors
/// A value that only a shell can evaluate.
pub fn appended(text: &str, name: &str, ours: &[String], default: &str) -> Result<String> {
    if ours.is_empty() {
        return Ok(text.to_owned());
    }
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let Some(line) = lines.iter_mut().rev().find(|line| value_start(line, name).is_some()) else {
        let line = format!("{name}=\"{}\"", words::appended(default, ours)?);
        return Ok(with_line(text, &line));
    };
    if let Some(assignment) = Assignment::parse(line, name)? {
        *line = assignment.with(&words::appended(assignment.value, ours)?);
    }
    Ok(lines.concat())
}

/// `text` with a line added at its end.
pub fn with_line(text: &str, line: &str) -> String {
    let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{newline}{line}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::words::tests::words;

    fn edited(text: &str) -> Result<String> {
        let (text, missing) = replaced(text, &["ARGS"], &words())?;
        appended(&text, "ARGS", &missing, "ro")
    }

    const OURS: &str = "zswap.enabled=1 zswap.compressor=zstd";

    #[test]
    fn the_value_changes_and_nothing_else() {
        for (before, after) in [
            ("ARGS=\"quiet\" # why\nX=1\n", format!("ARGS=\"quiet {OURS}\" # why\nX=1\n")),
            ("ARGS='a'", format!("ARGS='a {OURS}'")),
            ("ARGS=quiet\r\n", format!("ARGS=\"quiet {OURS}\"\r\n")),
            ("ARGS=\n", format!("ARGS=\"{OURS}\"\n")),
            ("  export ARGS+=\" x\"\n", format!("  export ARGS+=\" x {OURS}\"\n")),
            ("ARGS=\"d=\\\"a b\\\"\"\n", format!("ARGS=\"d=\\\"a b\\\" {OURS}\"\n")),
            ("ARGS=\"a\"\nARGS=\"$ARGS b\"\n", format!("ARGS=\"a\"\nARGS=\"$ARGS b {OURS}\"\n")),
            ("#ARGS=\"a\"\nARGSX=1", format!("#ARGS=\"a\"\nARGSX=1\nARGS=\"ro {OURS}\"\n")),
            ("", format!("ARGS=\"ro {OURS}\"\n")),
        ] {
            assert_eq!(edited(before).unwrap(), after, "{before:?}");
            assert_eq!(edited(&after).unwrap(), after, "twice: {before:?}");
        }
    }

    #[test]
    fn a_word_changes_where_it_stands() {
        let text = "ARGS=\"zswap.enabled=0 a\"\nARGS=\"$ARGS b\"\n";
        assert_eq!(
            edited(text).unwrap(),
            "ARGS=\"zswap.enabled=1 a\"\nARGS=\"$ARGS b zswap.compressor=zstd\"\n"
        );
    }

    #[test]
    fn what_only_a_shell_can_evaluate_is_refused() {
        for text in [
            "ARGS=\"a\n b\"\n",
            "ARGS=\"a\"\"b\"\n",
            "ARGS=\"$(cat x)\"\n",
            "ARGS=a\\ b\n",
            "ARGS=\"a\" \\\n",
            "ARGS=`x`",
        ] {
            assert!(edited(text).is_err(), "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn twice_is_once(text in "((ARGS=|#|export |a|\\\\|\"|'| |zswap.enabled=0|\n|;|\\$|ü){0,14})") {
            if let Ok(once) = edited(&text) {
                proptest::prop_assert_eq!(edited(&once).unwrap(), once);
            }
        }
    }
}

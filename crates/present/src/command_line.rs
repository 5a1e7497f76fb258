//! Words of a command line that the user can enter again.

use eke_model::units::Bytes;

/// `--variants a,b`; `None` if there are no words.
pub fn list<'a>(option: &str, words: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let words: Vec<&str> = words.into_iter().collect();
    (!words.is_empty()).then(|| format!("{option} {}", words.join(",")))
}

/// The flags that are set, such as `--no-harm`.
pub fn set<'a>(flags: &'a [(&'a str, bool)]) -> impl Iterator<Item = String> + 'a {
    flags.iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| (*flag).to_owned())
}

/// Exactly, in the largest unit that is whole.
pub fn size(size: Bytes) -> String {
    let units = [(30, "G"), (20, "M"), (10, "K")];
    let whole = units.iter().find(|(shift, _)| size.0 > 0 && size.0 % (1 << shift) == 0);
    whole.map_or(size.0.to_string(), |(shift, unit)| format!("{}{unit}", size.0 >> shift))
}

/// One word for a shell.
pub fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./,+=:@".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_flags_are_there_only_if_something_is() {
        assert_eq!(list("--links", ["1g", "10g"]).unwrap(), "--links 1g,10g");
        assert_eq!(list("--links", []), None);
        assert_eq!(set(&[("--no-a", true), ("--no-b", false)]).collect::<Vec<_>>(), ["--no-a"]);
    }
}

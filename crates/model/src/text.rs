//! Makes foreign text safe for a terminal or a log: names of processes and files, labels of disks, output of other
//! machines.
//!
//! A terminal obeys control characters wherever they come from, and some characters reverse the order of the text.
//! Everything printed for people goes through [`harmless`]; text that must not start a new line goes through
//! [`one_line`]. The escapes are those of JSON, so a JSON document stays valid.

use std::borrow::Cow;
use std::ffi::OsString;

/// Escapes (`\u001b`) every character that a terminal would obey, except line ends and tabs.
pub fn harmless(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c != '\n' && c != '\t' && is_obeyed(c))
}

/// Escapes line ends and tabs, too: for names.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_obeyed)
}

/// A name that somebody else chose, for a sentence of eke's: on one line, of at most `most` characters, without double quotes and without
/// characters that a terminal obeys; `?` if nothing is left.
pub fn name(text: &str, most: usize) -> String {
    let kept: String = text.chars().filter(|c| !is_obeyed(*c)).take(most).collect();
    let kept = kept.trim();
    if kept.is_empty() { "?".to_owned() } else { kept.replace('"', "'") }
}

/// Control characters (C0, DEL, C1), other ends of lines (U+2028, U+2029), and what changes the direction of text
/// (Unicode Standard Annex 9: U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069).
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(text: &str, is_bad: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_bad) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_bad(c) {
            // Four digits are enough: all these characters are in the first plane.
            safe.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

/// The arguments of a program as text.
///
/// # Errors
/// A sentence: the first one that is not UTF-8.
pub fn words(arguments: impl Iterator<Item = OsString>) -> Result<Vec<String>, String> {
    arguments.map(|word| word.into_string().map_err(|word| format!("{word:?} is not UTF-8"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_a_terminal_obeys_are_escaped() {
        assert_eq!(
            harmless("a\u{1b}[2J\u{7}\u{7f}\u{9b}31m\r\n\tb"),
            "a\\u001b[2J\\u0007\\u007f\\u009b31m\\u000d\n\tb"
        );
        assert_eq!(one_line("a\n\tb\u{85}\u{2028}"), "a\\u000a\\u0009b\\u0085\\u2028");
        assert_eq!(one_line("\u{202e}gpj.exe\u{2066}\u{200f}"), "\\u202egpj.exe\\u2066\\u200f");
        for plain in ["", "Äpfel/日本語 🦀", "\\u001b"] {
            assert!(matches!(one_line(plain), Cow::Borrowed(same) if same == plain));
        }
    }

    #[test]
    fn a_name_stays_a_name_in_a_sentence() {
        assert_eq!(name("Web Content", 15), "Web Content");
        assert_eq!(name("\u{1b}[2J\u{9b}31ma\n\"b\"\u{202e}\u{2028}", 64), "[2J31ma'b'");
        assert_eq!([name("", 9), name("\u{7}\n", 9), name("  ", 9)], ["?"; 3]);
        assert_eq!(name("日本語", 2), "日本");
    }

    #[test]
    fn an_argument_that_is_no_text_is_named() {
        use std::os::unix::ffi::OsStringExt;
        let of = |last: &[u8]| words(["--config".into(), OsString::from_vec(last.to_vec())].into_iter());
        assert_eq!(of(b"a").unwrap(), ["--config", "a"]);
        assert_eq!(of(b"a\xff\x1b").unwrap_err(), "\"a\\xFF\\u{1b}\" is not UTF-8");
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_is_obeyed_is_left_and_json_means_the_same(text in proptest::collection::vec(proptest::prelude::any::<char>(), 0..40)) {
            let text: String = text.into_iter().collect();
            proptest::prop_assert!(!one_line(&text).contains(is_obeyed));
            let json = serde_json::to_string_pretty(&[&text]).unwrap();
            let back: Vec<String> = serde_json::from_str(&harmless(&json)).unwrap();
            proptest::prop_assert_eq!(&back[0], &text);
        }
    }
}

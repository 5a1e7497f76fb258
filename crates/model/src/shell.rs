//! Words of a shell's command line.

/// One word, in quotes only if it needs them.
pub fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./,+=:@".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) { text.to_owned() } else { quoted(text) }
}

/// One word in quotes, whatever is in it.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stays_one() {
        let words = ["/a-b_c.d", "", "it's", "a b", "$(x)"].map(word);
        assert_eq!(words, ["/a-b_c.d", "''", r"'it'\''s'", "'a b'", "'$(x)'"]);
        assert_eq!(quoted("a"), "'a'");
    }
}

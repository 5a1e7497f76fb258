//! `ltsp.conf(5)`: sections in brackets, comments, assignments and other lines in the shell's syntax.
//!
//! LTSP makes a shell script of the file, so a value may be in quotes and span several lines, and a section may have commands. The parser
//! evaluates nothing: it keeps commands as they are, and an assignment between them counts as if the shell always reached it.

/// A line, or several that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its first line, from 1.
    pub line: usize,
    /// Its text in the file, with the end of the last line.
    pub text: String,
    /// Its kind.
    pub kind: EntryKind,
}

/// The kind of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// Empty, or a comment.
    Nothing,
    /// `[clients]`: the name.
    Section(String),
    /// `NAME=value`: the name and the raw value.
    Assignment {
        /// `SSH_OPTIONS`
        name: String,
        /// With its quotes, without the comment after it.
        raw: String,
    },
    /// Any other line of shell: a command, as in the last example of ltsp.conf(5).
    Code,
}

/// An error in a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct ParseError {
    /// Its number, from 1.
    pub line: usize,
    /// The error.
    pub why: String,
}

/// All entries; together they are the whole text.
///
/// # Errors
/// The first section without a proper name, or quote that is not closed.
pub fn entries(text: &str) -> Result<Vec<Entry>, ParseError> {
    let mut entries = Vec::new();
    let mut lines = text.split_inclusive('\n').enumerate();
    while let Some((n, first)) = lines.next() {
        let (line, mut whole) = (n + 1, first.to_owned());
        while is_open(&whole) {
            let Some((_, next)) = lines.next() else {
                return Err(ParseError { line, why: "a quote is opened here and never closed".to_owned() });
            };
            whole.push_str(next);
        }
        let kind = kind(whole.trim_end()).map_err(|why| ParseError { line, why })?;
        entries.push(Entry { line, text: whole, kind });
    }
    Ok(entries)
}

/// Does the text end inside quotes, or after a backslash?
fn is_open(text: &str) -> bool {
    let trimmed = text.trim_start();
    if trimmed.starts_with('#') || trimmed.starts_with('[') {
        return false;
    }
    let (mut quote, mut escaped, mut before) = (None, false, ' ');
    for c in text.trim_end_matches(['\n', '\r']).chars() {
        match (c, quote) {
            _ if escaped => escaped = false,
            ('\\', q) if q != Some('\'') => escaped = true,
            ('#', None) if before.is_whitespace() => return false,
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(q)) if c == q => quote = None,
            _ => {}
        }
        before = c;
    }
    quote.is_some() || escaped
}

/// As LTSP reads it (`ini2sh` in its 55-config.sh): spaces may be before a section, and around the first `=` of a line that begins with the name. The
/// shell reads the rest, where a blank beside `=` makes a command.
fn kind(line: &str) -> Result<EntryKind, String> {
    let inner = line.trim_start();
    if inner.is_empty() || inner.starts_with('#') {
        return Ok(EntryKind::Nothing);
    }
    if let Some(rest) = line.trim_start_matches(' ').strip_prefix('[') {
        let (name, after) = rest.split_once(']').ok_or("a section's name has no ] at its end")?;
        if name.trim().is_empty() || !(after.trim().is_empty() || after.trim_start().starts_with('#')) {
            return Err(format!("\"{line}\" is no section"));
        }
        return Ok(EntryKind::Section(name.trim().to_owned()));
    }
    let Some((name, raw)) = inner.split_once('=') else { return Ok(EntryKind::Code) };
    let is_first = inner.len() == line.len();
    let (name, raw) =
        if is_first { (name.trim_end_matches(' '), raw.trim_start_matches(' ')) } else { (name, raw) };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(is_name) {
        return Ok(EntryKind::Code);
    }
    if raw.starts_with([' ', '\t']) && !without_comment(raw).trim().is_empty() {
        return Ok(EntryKind::Code);
    }
    Ok(EntryKind::Assignment { name: name.to_owned(), raw: without_comment(raw).trim().to_owned() })
}

/// Cuts off ` # ...` after a value, outside quotes.
fn without_comment(raw: &str) -> &str {
    let (mut quote, mut before) = (None, 'x');
    for (at, c) in raw.char_indices() {
        match (c, quote) {
            ('#', None) if before.is_whitespace() => return &raw[..at],
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(q)) if c == q => quote = None,
            _ => {}
        }
        before = c;
    }
    raw
}

/// Why a value is not literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotLiteral {
    /// It has quotes, a variable or a command.
    #[error("the shell evaluates a part of it")]
    Evaluated,
    /// The shell takes all but the first word as a command.
    #[error("it has several words without quotes")]
    Words,
}

/// A literal value, without its quotes.
///
/// # Errors
/// Why it is none.
pub fn plain(raw: &str) -> Result<String, NotLiteral> {
    let inner =
        |quote: char| raw.strip_prefix(quote).and_then(|r| r.strip_suffix(quote)).filter(|_| raw.len() > 1);
    if let Some(text) = inner('\'').filter(|t| !t.contains('\'')) {
        return Ok(text.to_owned());
    }
    let text = inner('"').unwrap_or(raw);
    if text.contains(['$', '`', '\\', '"', '\'', '\n']) {
        return Err(NotLiteral::Evaluated);
    }
    if inner('"').is_none() && text.contains([' ', '\t', ';', '&', '|', '<', '>', '(', ')']) {
        return Err(NotLiteral::Words);
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# LTSP\n[server]\nNAT=1  # yes\n\n[clients]\nPOST_INIT_A=\"echo '#1'\necho two\"\nSSH_OPTIONS='-p 2222'\n[52:54:00:aa:bb:cc]\nHOSTNAME=pc01";

    #[test]
    fn the_entries_are_the_whole_text() {
        let found = entries(TEXT).unwrap();
        assert_eq!(found.iter().map(|e| e.text.as_str()).collect::<String>(), TEXT);
        let sections: Vec<&str> = found
            .iter()
            .filter_map(|e| if let EntryKind::Section(n) = &e.kind { Some(n.as_str()) } else { None })
            .collect();
        assert_eq!(sections, ["server", "clients", "52:54:00:aa:bb:cc"]);
        assert!(
            found.iter().any(|e| e.kind == EntryKind::Assignment { name: "NAT".into(), raw: "1".into() })
        );
        assert!(found.iter().any(|e| e.line == 6 && e.text.lines().count() == 2));
    }

    #[test]
    fn errors_have_their_line() {
        for (text, line, word) in [
            ("[clients]\nA=\"x\nB=1\n", 2, "never closed"),
            ("[clients\nA=1\n", 1, "no ]"),
            ("[]\n", 1, "no section"),
        ] {
            let broken = entries(text).unwrap_err();
            assert!(broken.line == line && broken.why.contains(word), "{text:?}: {broken}");
        }
    }

    /// The last example of ltsp.conf(5), and other lines that `sh -n` accepts.
    #[test]
    fn commands_are_kept_and_hide_no_option() {
        let text = "[clients]\nPOST_INIT_SET_ROOT_HASH=\"section_set_root_hash\"\n[set_root_hash]\n\
            sed 's|^root:[^:]*:|root:$6$VRf:|' -i /etc/shadow\nif true; then # it's code\n  1A=2 x\nfi\n[server]\nTFTP_DIR = /tftp\n";
        let found = entries(text).unwrap();
        assert_eq!(found.iter().map(|e| e.text.as_str()).collect::<String>(), text);
        let code: Vec<usize> =
            found.iter().filter(|e| e.kind == EntryKind::Code).map(|entry| entry.line).collect();
        assert_eq!(code, [4, 5, 6, 7]);
        let last = EntryKind::Assignment { name: "TFTP_DIR".into(), raw: "/tftp".into() };
        assert_eq!(found.last().unwrap().kind, last);
    }

    #[test]
    fn only_literal_values_are_accepted() {
        for (raw, value) in
            [("\"-p 2222\"", "-p 2222"), ("'a$b'", "a$b"), ("-C", "-C"), ("", ""), ("\"\"", "")]
        {
            assert_eq!(plain(raw).as_deref(), Ok(value), "{raw}");
        }
        for raw in ["\"$A -C\"", "`x`", "a b", "\"a\"b", "\"", "a;b"] {
            assert!(plain(raw).is_err(), "{raw}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_whole_or_refused(text: String) {
            if let Ok(found) = entries(&text) {
                proptest::prop_assert_eq!(found.iter().map(|e| e.text.as_str()).collect::<String>(), text);
            }
        }
    }
}

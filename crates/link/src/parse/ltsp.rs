//! `ltsp.conf(5)`: sections in brackets, comments, and assignments as the shell has them.
//!
//! LTSP turns the file into a shell script, so a value may be in quotes and go over several lines. Everything that is not understood
//! is refused with its line, and nothing is ever evaluated.

/// A line, or several that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its first line, from 1.
    pub line: usize,
    /// As it is in the file, with the end of the last line.
    pub text: String,
    /// What it is.
    pub kind: Kind,
}

/// What a line is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Empty, or a comment.
    Nothing,
    /// `[clients]`: the name.
    Section(String),
    /// `NAME=value`: the name, and the value as it is written.
    Assignment {
        /// `SSH_OPTIONS`
        name: String,
        /// With its quotes, without a comment behind it.
        raw: String,
    },
}

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct Broken {
    /// From 1.
    pub line: usize,
    /// What is wrong.
    pub why: String,
}

/// All entries; together they are the whole text.
///
/// # Errors
/// The first line that is neither a section, a comment nor an assignment, or a quote that is not closed.
pub fn entries(text: &str) -> Result<Vec<Entry>, Broken> {
    let mut entries = Vec::new();
    let mut lines = text.split_inclusive('\n').enumerate();
    while let Some((n, first)) = lines.next() {
        let (line, mut whole) = (n + 1, first.to_owned());
        while is_open(&whole) {
            let Some((_, next)) = lines.next() else {
                return Err(Broken { line, why: "a quote is opened here and never closed".to_owned() });
            };
            whole.push_str(next);
        }
        let kind = kind(whole.trim()).map_err(|why| Broken { line, why })?;
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

fn kind(line: &str) -> Result<Kind, String> {
    if line.is_empty() || line.starts_with('#') {
        return Ok(Kind::Nothing);
    }
    if let Some(rest) = line.strip_prefix('[') {
        let (name, after) = rest.split_once(']').ok_or("a section's name has no ] at its end")?;
        if name.trim().is_empty() || !(after.trim().is_empty() || after.trim_start().starts_with('#')) {
            return Err(format!("\"{line}\" is no section"));
        }
        return Ok(Kind::Section(name.trim().to_owned()));
    }
    let (name, raw) = line.split_once('=').ok_or_else(|| unknown(line))?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(is_name) {
        return Err(unknown(line));
    }
    Ok(Kind::Assignment { name: name.to_owned(), raw: without_comment(raw).trim().to_owned() })
}

fn unknown(line: &str) -> String {
    let first = line.lines().next().unwrap_or_default();
    format!("\"{first}\" is neither a section, a comment nor NAME=value")
}

/// ` # ...` behind a value, outside quotes.
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

/// A value that means itself: its quotes taken off.
///
/// # Errors
/// The shell would evaluate something in it.
pub fn plain(raw: &str) -> Result<String, &'static str> {
    let inner =
        |quote: char| raw.strip_prefix(quote).and_then(|r| r.strip_suffix(quote)).filter(|_| raw.len() > 1);
    if let Some(text) = inner('\'').filter(|t| !t.contains('\'')) {
        return Ok(text.to_owned());
    }
    let text = inner('"').unwrap_or(raw);
    if text.contains(['$', '`', '\\', '"', '\'', '\n']) {
        return Err("the shell evaluates something in it");
    }
    if inner('"').is_none() && text.contains([' ', '\t', ';', '&', '|', '<', '>', '(', ')']) {
        return Err("it has several words without quotes");
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
            .filter_map(|e| if let Kind::Section(n) = &e.kind { Some(n.as_str()) } else { None })
            .collect();
        assert_eq!(sections, ["server", "clients", "52:54:00:aa:bb:cc"]);
        assert!(found.iter().any(|e| e.kind == Kind::Assignment { name: "NAT".into(), raw: "1".into() }));
        assert!(found.iter().any(|e| e.line == 6 && e.text.lines().count() == 2));
    }

    #[test]
    fn what_does_not_parse_is_said_with_its_line() {
        for (text, line, word) in [
            ("[clients]\nA=\"x\nB=1\n", 2, "never closed"),
            ("[clients\nA=1\n", 1, "no ]"),
            ("A=1\n\nrm -rf x\n", 3, "rm -rf x"),
            ("1A=2\n", 1, "1A=2"),
            ("[]\n", 1, "no section"),
        ] {
            let broken = entries(text).unwrap_err();
            assert!(broken.line == line && broken.why.contains(word), "{text:?}: {broken}");
        }
    }

    #[test]
    fn only_a_plain_value_is_taken_for_what_it_says() {
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

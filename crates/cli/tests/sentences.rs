//! Every sentence that the product can print, beside its help: one sorted list for each crate, to be read and reviewed as one.
//!
//! A sentence is a string in `src` with two words in a row, outside tests. Of attributes only `#[error]` counts: doc comments of
//! options stand in the list of the help. Of the web page (`assets`) it is a string of the JavaScript, or a line of the HTML's text. SQL is left
//! out. After a change: `INSTA_UPDATE=always cargo test -p eke-cli --test sentences`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

const SQL: [&str; 12] = [
    "ALTER ", "BEGIN", "CREATE ", "DELETE ", "DROP ", "INSERT ", "PRAGMA ", "REPLACE ", "ROLLBACK",
    "SELECT ", "UPDATE ", "VACUUM",
];

fn crates() -> Vec<(String, PathBuf)> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found: Vec<_> = fs::read_dir(workspace)
        .unwrap()
        .flatten()
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.path()))
        .filter(|(_, path)| path.join("src").is_dir())
        .collect();
    found.sort();
    found
}

fn is_test(path: &Path) -> bool {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    name == "tests" || name.ends_with("_tests")
}

fn collect(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if is_test(&path) {
            continue;
        }
        if path.is_dir() {
            collect(&path, found);
            continue;
        }
        let text = || fs::read_to_string(&path).unwrap();
        match path.extension().and_then(|e| e.to_str()) {
            Some("rs") => {
                let tokens = text().parse::<TokenStream>();
                walk(tokens.unwrap_or_else(|e| panic!("{}: {e}", path.display())), found);
            }
            Some("js") => found.extend(strings(&text()).into_iter().filter(|line| has_two_words(line))),
            Some("html") => found.extend(html_text(&text())),
            _ => {}
        }
    }
}

/// The strings of JavaScript, a template as one with its `${...}`. Comments are skipped; regular expressions must have no quotes.
fn strings(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['"', '\'', '`', '/']) {
        let (quote, after) = (rest.as_bytes()[at], &rest[at + 1..]);
        rest = match (quote, after.as_bytes().first()) {
            (b'/', Some(b'/')) => after.split_once('\n').map_or("", |(_, rest)| rest),
            (b'/', Some(b'*')) => after.split_once("*/").map_or("", |(_, rest)| rest),
            (b'/', _) => after,
            _ => {
                let end = end_of_string(after, char::from(quote));
                found.push(after[..end].to_owned());
                after.get(end + 1..).unwrap_or_default()
            }
        };
    }
    found
}

/// The length of a string up to its closing quote; quotes within `${...}` of a template do not close it.
fn end_of_string(text: &str, quote: char) -> usize {
    let (mut depth, mut escaped, mut before) = (0, false, ' ');
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '{' if depth > 0 || (quote == '`' && before == '$') => depth += 1,
            '}' if depth > 0 => depth -= 1,
            c if c == quote && depth == 0 => return at,
            _ => {}
        }
        before = c;
    }
    text.len()
}

/// The text of HTML between tags, line by line.
fn html_text(html: &str) -> Vec<String> {
    let text: String = html
        .split('<')
        .filter_map(|part| part.split_once('>'))
        .map(|(_, text)| format!("{text}\n"))
        .collect();
    text.lines().map(|line| line.trim().to_owned()).filter(|line| has_two_words(line)).collect()
}

/// The name of an attribute, and whether what follows it is a test.
fn attribute(group: &Group) -> (String, bool) {
    let text: String = group.stream().to_string().split_whitespace().collect();
    let name = text.split(['(', '=']).next().unwrap_or_default().to_owned();
    let is_test = text == "test" || text == "cfg(test)" || text.starts_with("cfg(all(test");
    (name, is_test)
}

fn walk(tokens: TokenStream, found: &mut BTreeSet<String>) {
    let mut tokens = tokens.into_iter().peekable();
    let mut previous_is_hash = false;
    let mut skips = false;
    for token in tokens.by_ref() {
        let is_hash = matches!(&token, TokenTree::Punct(p) if p.as_char() == '#' || (previous_is_hash && p.as_char() == '!'));
        match token {
            TokenTree::Group(group) if previous_is_hash && group.delimiter() == Delimiter::Bracket => {
                let (name, is_test) = attribute(&group);
                skips |= is_test;
                if name == "error" && !skips {
                    walk(group.stream(), found);
                }
            }
            TokenTree::Group(group) => {
                if !skips {
                    walk(group.stream(), found);
                }
                // The body ends the item that an attribute stood before.
                skips &= group.delimiter() != Delimiter::Brace;
            }
            TokenTree::Punct(p) if p.as_char() == ';' => skips = false,
            TokenTree::Literal(literal) if !skips => found.extend(sentence(&literal.to_string())),
            _ => {}
        }
        previous_is_hash = is_hash;
    }
}

/// A string's text as it stands in the source, on one line, if it is a sentence.
fn sentence(literal: &str) -> Option<String> {
    let raw = literal.trim_start_matches('r').trim_matches('#');
    let text = raw.strip_prefix('"')?.strip_suffix('"')?;
    let mut line = String::new();
    for part in text.split("\\\n") {
        line += if line.is_empty() { part } else { part.trim_start() };
    }
    let line = line.replace('\n', "\\n");
    (has_two_words(&line) && !SQL.iter().any(|verb| line.starts_with(verb))).then_some(line)
}

fn has_two_words(text: &str) -> bool {
    let is_word = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        word.chars().count() > 1 && word.chars().all(|c| c.is_alphabetic() || c == '-' || c == '\'')
    };
    let words: Vec<bool> = text.split([' ']).map(is_word).collect();
    words.windows(2).any(|pair| pair == [true, true])
}

#[test]
fn every_sentence_of_the_product_is_reviewed() {
    let mut count = 0;
    for (name, path) in crates() {
        let mut found = BTreeSet::new();
        for part in ["src", "assets"].map(|part| path.join(part)).iter().filter(|part| part.is_dir()) {
            collect(part, &mut found);
        }
        count += found.len();
        if !found.is_empty() {
            let lines: String = found.iter().map(|line| format!("{line}\n")).collect();
            insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
                insta::assert_snapshot!(format!("sentences__{name}"), lines);
            });
        }
    }
    assert!(count > 1000, "only {count} sentences were found");
}

#[test]
fn tests_and_comments_are_no_sentences() {
    let source = r#"
        /// A comment of two words.
        #[error("cannot read {path}: {source}")]
        fn a() { print!("one line \
            of text"); "word"; "two words"; }
        #[cfg(test)]
        mod tests { fn b() { "not in the list"; } }
        fn c() { "SELECT one FROM two"; "after the tests"; }
    "#;
    let mut found = BTreeSet::new();
    walk(source.parse().unwrap(), &mut found);
    let found: Vec<&str> = found.iter().map(String::as_str).collect();
    assert_eq!(found, ["after the tests", "cannot read {path}: {source}", "one line of text", "two words"]);
}

#[test]
fn the_pages_strings_and_text_are_sentences() {
    let script = "// a comment's words\nlet a = \"two words\", b = `of ${c ? \"x\" : 'y'} three words`; /* no string */ let d = 1 / 2;";
    assert_eq!(strings(script), ["two words", "of ${c ? \"x\" : 'y'} three words"]);
    assert_eq!(html_text("<h1>A title here</h1>\n<p>one</p>"), ["A title here"]);
}

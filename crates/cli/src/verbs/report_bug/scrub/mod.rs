//! Replaces what is private in text: names, paths, addresses, identifiers. Pure.
//!
//! A path that is not known to be eke's, the kernel's or a plain device's is replaced with the rest of its line, because
//! it may contain blanks.

mod kinds;
mod places;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use eke_model::text::one_line;
use serde_json::Value;

use kinds::{IDENTIFIERS, is_address, is_group, is_host, is_identifier, is_public, open_value, private_path};
use places::{has_word, places_of_path, replace_at, replace_word};

pub(super) use kinds::DOMAINS;

/// What stands between two words of a token: `10.0.0.1,10.0.0.2`.
const SEPARATORS: [char; 12] = [',', ';', '(', ')', '<', '>', '"', '\'', '`', '|', '{', '}'];
/// The level of the agent's lines about what it did.
const LOG_LEVEL: &str = "INFO";
const PROGRAM: &str = "<program>";
const USER: &str = "<user>";
const HOST: &str = "<host>";
const ADDRESS: &str = "<address>";
const IDENTIFIER: &str = "<identifier>";

/// What belongs to this machine and its users.
#[derive(Debug, Clone, Default)]
pub struct Private {
    /// The machine's name, short and long.
    pub hosts: Vec<String>,
    /// Names of users, and parts of their full names.
    pub users: Vec<String>,
    /// Paths that are replaced wherever they occur: mount points, swap files. `/` is not one.
    pub paths: Vec<String>,
    /// Names of control groups.
    pub groups: Vec<String>,
    /// Files of known programs, which are the same on every machine.
    pub public: Vec<String>,
}

/// Replaces private text, each path by the same number.
#[derive(Debug, Default)]
pub struct Scrubber {
    private: Private,
    paths: Vec<String>,
    /// How often each kind was replaced.
    pub replaced: BTreeMap<&'static str, usize>,
}

impl Scrubber {
    /// Replaces what `private` lists, and what looks private.
    pub fn new(mut private: Private) -> Self {
        // A longer path may contain a shorter one.
        for names in [&mut private.paths, &mut private.groups] {
            names.retain(|name| name.trim_matches('/').len() > 1 && !is_public(name));
            names.sort_by_key(|name| std::cmp::Reverse(name.len()));
            names.dedup();
        }
        Self { private, ..Self::default() }
    }

    /// Every string of a document; its keys are eke's.
    pub fn document(&mut self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(all) => all.into_iter().map(|value| self.document(value)).collect(),
            Value::Object(all) => all.into_iter().map(|(key, value)| (key, self.document(value))).collect(),
            other => other,
        }
    }

    /// Some lines.
    pub fn text(&mut self, text: &str) -> String {
        let lines: Vec<String> = text.lines().map(|line| self.line(line)).collect();
        lines.join("\n")
    }

    fn line(&mut self, line: &str) -> String {
        let mut line = self.without_program(&one_line(&line.replace('\t', " ")));
        for path in self.private.paths.clone() {
            line = self.without(&line, &path);
        }
        for group in self.private.groups.clone() {
            if has_word(&line, &group) {
                self.count("control groups");
                line = replace_word(&line, &group, "<group>");
            }
        }
        self.tokens(&line)
    }

    /// A line of the agent's log without the program that it begins with (`Event::named`): ` INFO "leak (leak.service)": Ended: process 7`.
    fn without_program(&mut self, line: &str) -> String {
        let named = line.split_once('"').filter(|(before, _)| before.trim() == LOG_LEVEL);
        let Some((before, (_, text))) = named.and_then(|(b, rest)| Some((b, rest.split_once("\": ")?)))
        else {
            return line.to_owned();
        };
        self.count("programs");
        format!("{before}{PROGRAM}: {text}")
    }

    /// A line without known paths and groups. A path that is not known may contain blanks, so it ends the line; so does a value in quotes.
    fn tokens(&mut self, line: &str) -> String {
        let (mut shown, mut before) = (String::new(), "");
        for (n, token) in line.split(' ').enumerate() {
            if n > 0 {
                shown.push(' ');
            }
            let core = token.trim_matches(|c: char| !c.is_alphanumeric() && c != '/');
            let known = self.private.public.iter().any(|path| path == core);
            if let Some(start) = private_path(token).filter(|_| !known) {
                shown += &self.token(&token[..start], before);
                shown += &self.number(&token[start..]);
                return shown + &kernels_answer(line);
            }
            if let Some((key, _)) = open_value(token) {
                self.count("identifiers");
                return format!("{shown}{key}={IDENTIFIER}{}", kernels_answer(line));
            }
            shown += &self.token(token, before);
            before = token;
        }
        shown
    }

    /// A known path, wherever it stands alone.
    fn without(&mut self, line: &str, path: &str) -> String {
        let at = places_of_path(line, path);
        if at.is_empty() {
            return line.to_owned();
        }
        let number = self.number(path);
        replace_at(line, at, &number)
    }

    fn number(&mut self, path: &str) -> String {
        self.count("paths");
        let known = self.paths.iter().position(|p| p == path).unwrap_or_else(|| {
            self.paths.push(path.to_owned());
            self.paths.len() - 1
        });
        format!("<path {}>", known + 1)
    }

    /// A word and what stands around it; `before` is the word before, which may say what it is (`serial: 2038471293`).
    fn token(&mut self, token: &str, before: &str) -> String {
        let said = before.trim_matches(|c: char| !c.is_alphanumeric()).to_ascii_lowercase();
        let is_value = before.ends_with(':') || token.contains(|c: char| c.is_ascii_digit() || c == '"');
        if IDENTIFIERS.contains(&said.as_str()) && is_value {
            self.count("identifiers");
            return IDENTIFIER.to_owned();
        }
        let mut shown = String::new();
        for part in token.split_inclusive(SEPARATORS) {
            let sign = part.chars().next_back().filter(|c| SEPARATORS.contains(c));
            let bare = sign.map_or(part, |sign| part.strip_suffix(sign).unwrap_or(part));
            shown += &self.part(bare);
            shown.extend(sign);
        }
        self.names(&shown)
    }

    /// What stands between two separators.
    fn part(&mut self, part: &str) -> String {
        let core = part.trim_matches(|c: char| !c.is_alphanumeric() && !"[]:".contains(c));
        let core = core.strip_suffix(':').filter(|bare| !bare.ends_with(':')).unwrap_or(core);
        let (key, value) = core.rsplit_once('=').unwrap_or(("", core));
        let (what, instead) = if is_address(value) {
            ("addresses", ADDRESS)
        } else if is_identifier(key, value) {
            ("identifiers", IDENTIFIER)
        } else if is_host(value) {
            ("names", HOST)
        } else if is_group(value) {
            ("control groups", "<group>")
        } else {
            return part.to_owned();
        };
        self.count(what);
        part.replace(core, instead)
    }

    fn names(&mut self, token: &str) -> String {
        let mut shown = token.to_owned();
        for (names, instead) in [(self.private.hosts.clone(), HOST), (self.private.users.clone(), USER)] {
            for name in names.iter().filter(|name| !name.is_empty()) {
                if has_word(&shown, name) {
                    self.count("names");
                    shown = replace_word(&shown, name, instead);
                }
            }
        }
        shown
    }

    fn count(&mut self, what: &'static str) {
        *self.replaced.entry(what).or_default() += 1;
    }
}

/// ` ... (os error 2)` at the end of a line says nothing private.
fn kernels_answer(line: &str) -> String {
    let answer = line.rfind("(os error ").map(|at| &line[at..]);
    let number = answer.and_then(|a| a.strip_prefix("(os error ")?.split(')').next()?.parse::<u32>().ok());
    number.map_or_else(|| " ...".to_owned(), |n| format!(" ... (os error {n})"))
}

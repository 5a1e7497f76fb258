//! The assignments that hold for one client.
//!
//! LTSP turns each section into a function and calls those of the lines above all sections, of `clients`, `common`, the hardware address, the
//! IP address and the name, in this order (`eval_ini` and `ini2sh` in its `55-config.sh`). What a later one assigns replaces what an earlier one
//! did. `INCLUDE` calls another section in its place; no section is called twice. Names are patterns of the shell's `case`, in lower case. Of
//! several sections that match, the first one in the file is called; of several with one name, the last one's lines count.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::entries::{Entry, EntryKind};

/// A client, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Who {
    /// Its hardware address, in lower case.
    pub mac: Option<String>,
    /// Its IP address.
    pub ip: Option<String>,
    /// Its name; a section of the hardware or IP address may set `HOSTNAME`, which then counts.
    pub name: Option<String>,
}

/// A raw value, with its quotes, and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// From 1.
    pub line: usize,
    /// With quotes.
    pub raw: String,
}

/// What is assigned for a client.
pub type Assigned = BTreeMap<String, Value>;

/// All that is assigned for this client.
pub fn assigned(entries: &[Entry], who: &Who) -> Assigned {
    let mut caller = Caller::new(entries);
    let addresses = [who.mac.as_deref(), who.ip.as_deref()];
    for name in ["clients", "common"].into_iter().chain(addresses.into_iter().flatten()) {
        caller.call(name);
    }
    let own = caller.assigned.get("HOSTNAME").and_then(|value| crate::plain(&value.raw).ok());
    if let Some(name) = own.or_else(|| who.name.clone()) {
        caller.call(&name);
    }
    caller.assigned
}

/// What is assigned for the server itself.
pub fn of_server(entries: &[Entry]) -> Assigned {
    let mut caller = Caller::new(entries);
    caller.call("common");
    caller.call("server");
    caller.assigned
}

/// The sections that are named by a hardware address alone: clients that the administrator knows.
pub fn macs(entries: &[Entry]) -> Vec<String> {
    let mut macs: Vec<String> = entries.iter().filter_map(pattern).collect();
    macs.retain(|name| crate::leases::is_mac(name));
    macs.sort_unstable();
    macs.dedup();
    macs
}

/// The pattern of the section that this entry begins, as LTSP reads it.
pub fn pattern(entry: &Entry) -> Option<String> {
    if let EntryKind::Section(name) = &entry.kind { Some(kept(name)) } else { None }
}

/// What LTSP keeps of a section's name.
fn kept(name: &str) -> String {
    let is_kept = |c: &char| c.is_ascii_alphanumeric() || "-*./:?@_|".contains(*c);
    name.to_ascii_lowercase().chars().filter(is_kept).collect()
}

/// The head of the section that LTSP calls for an address or a name.
pub fn called(entries: &[Entry], name: &str) -> Option<usize> {
    entries.iter().position(|entry| pattern(entry).is_some_and(|pattern| matches(&pattern, name)))
}

/// The entries below the head of the section with this pattern. Of several, the last one: it is the one that counts.
pub fn body(entries: &[Entry], pattern_text: &str) -> Option<Range<usize>> {
    let head = entries.iter().rposition(|e| pattern(e).as_deref() == Some(pattern_text))?;
    Some(head + 1..section_end(entries, head + 1))
}

fn section_end(entries: &[Entry], from: usize) -> usize {
    let rest = entries[from..].iter().position(|e| matches!(e.kind, EntryKind::Section(_)));
    rest.map_or(entries.len(), |n| from + n)
}

struct Caller<'a> {
    entries: &'a [Entry],
    called: Vec<String>,
    assigned: Assigned,
}

impl<'a> Caller<'a> {
    /// Has read the lines above all sections.
    fn new(entries: &'a [Entry]) -> Self {
        let mut caller = Self { entries, called: Vec::new(), assigned: Assigned::new() };
        entries[..section_end(entries, 0)].iter().for_each(|entry| caller.assign(entry));
        caller
    }

    /// Calls the section that matches `name`.
    fn call(&mut self, name: &str) {
        let entries = self.entries;
        let Some(pattern) = called(entries, name).and_then(|at| pattern(&entries[at])) else { return };
        if self.called.contains(&pattern) {
            return;
        }
        let body = body(entries, &pattern).unwrap_or_default();
        self.called.push(pattern);
        entries[body].iter().for_each(|entry| self.assign(entry));
    }

    fn assign(&mut self, entry: &Entry) {
        let EntryKind::Assignment { name, raw } = &entry.kind else { return };
        // With blanks before it, it is a variable like any other.
        if name.eq_ignore_ascii_case("include") && !entry.text.starts_with([' ', '\t']) {
            self.call(&kept(raw.split('#').next().unwrap_or_default()));
        } else {
            self.assigned.insert(name.clone(), Value { line: entry.line, raw: raw.clone() });
        }
    }
}

/// The alternative of a pattern that matches. `INCLUDE` of it calls the section, since it matches its own text.
pub fn alternative<'a>(pattern: &'a str, text: &str) -> Option<&'a str> {
    pattern.split('|').find(|one| glob(one.as_bytes(), text.as_bytes()))
}

/// Does a pattern of `case` match? `|` separates alternatives; `*` is any text, `?` any character.
fn matches(pattern: &str, text: &str) -> bool {
    alternative(pattern, text).is_some()
}

/// Without recursion: at a mismatch the last `*` takes one more character.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((at, from)) = star else { return false };
                star = Some((at, from + 1));
                p = at + 1;
                t = from + 1;
            }
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries;

    const TEXT: &str = "[clients]\nEKE=auto\nEKE_SWAP=zram\n[52:54:*|02:*]\nHOSTNAME=pc01\nINCLUDE=small\n\
        [pc0?]\nEKE=off\n[small]\nEKE_POOL_PERCENT=50\nINCLUDE=small\n[192.168.67.9]\nEKE=\"off\"\n";

    fn value(who: &Who, name: &str) -> Option<String> {
        assigned(&entries(TEXT).unwrap(), who).get(name).map(|v| v.raw.clone())
    }

    #[test]
    fn the_later_section_wins() {
        let known = Who { mac: Some("52:54:00:aa:bb:cc".into()), ..Who::default() };
        let of = |name: &str| value(&known, name);
        assert_eq!((of("EKE").as_deref(), of("EKE_SWAP").as_deref()), (Some("off"), Some("zram")));
        assert_eq!(of("EKE_POOL_PERCENT").as_deref(), Some("50"));
        assert_eq!(value(&Who::default(), "EKE").as_deref(), Some("auto"));
        let server = of_server(&entries("[common]\nTFTP_DIR=/a\n[server]\nTFTP_DIR=/b\n").unwrap());
        assert_eq!(server["TFTP_DIR"].raw, "/b");
        let by_ip = Who { ip: Some("192.168.67.9".into()), ..Who::default() };
        assert_eq!(value(&by_ip, "EKE").as_deref(), Some("\"off\""));
    }

    #[test]
    fn lines_above_all_sections_are_read_first() {
        let text = "EKE=auto\nEKE_SWAP=zram\n[clients]\nEKE=off\n";
        let found = assigned(&entries(text).unwrap(), &Who::default());
        assert_eq!((found["EKE"].raw.as_str(), found["EKE_SWAP"].raw.as_str()), ("off", "zram"));
        assert_eq!(of_server(&entries(text).unwrap())["EKE"].raw, "auto");
    }

    #[test]
    fn patterns_match_as_in_the_shell() {
        for (pattern, text, is_match) in [
            ("pc*", "pc01", true),
            ("a|pc?", "pc1", true),
            ("pc?", "pc", false),
            ("*a*b", "xxaxb", true),
            ("*a*b", "xxaxbc", false),
            ("", "", true),
        ] {
            assert_eq!(matches(pattern, text), is_match, "{pattern} {text}");
        }
    }

    #[test]
    fn clients_with_a_section_are_known() {
        let text = "[52:54:00:AA:BB:CC]\n[b8:27:*]\n[clients]\n[52:54:00:aa:bb:cc]\n";
        assert_eq!(macs(&entries(text).unwrap()), ["52:54:00:aa:bb:cc"]);
    }
}

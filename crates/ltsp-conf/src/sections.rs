//! The assignments that hold for one client.
//!
//! LTSP turns each section into a function and calls those of the lines above all sections, of `clients`, `common`, the hardware address, the
//! IP address and the name, in this order (`eval_ini` and `ini2sh` in its `55-config.sh`). What a later one assigns replaces what an earlier one
//! did. `INCLUDE` calls the function of another section in its place; no section is called twice. Names are patterns of the shell's `case`, in
//! lower case. Of several sections that match, the first one in the file is called; of several with one function, the last one's lines count.

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

/// The function of the lines above all sections.
const UNNAMED: &str = "unnamed";

/// All that is assigned for this client.
pub fn assigned(entries: &[Entry], who: &Who) -> Assigned {
    let mut caller = Caller { entries, called: Vec::new(), assigned: Assigned::new() };
    let addresses = [who.mac.as_deref(), who.ip.as_deref()];
    caller.run(UNNAMED.to_owned());
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
    let mut caller = Caller { entries, called: Vec::new(), assigned: Assigned::new() };
    caller.run(UNNAMED.to_owned());
    caller.call("common");
    caller.call("server");
    caller.assigned
}

/// The sections that are named by a hardware address alone: clients that the administrator knows.
pub fn macs(entries: &[Entry]) -> Vec<String> {
    let mut macs: Vec<String> = entries.iter().filter_map(section).collect();
    macs.retain(|name| crate::leases::is_mac(name));
    macs.sort_unstable();
    macs.dedup();
    macs
}

/// The pattern of the section that this entry begins, as LTSP reads it.
fn section(entry: &Entry) -> Option<String> {
    let EntryKind::Section(name) = &entry.kind else { return None };
    let is_kept = |c: &char| c.is_ascii_alphanumeric() || "-*./:?@_|".contains(*c);
    Some(name.to_ascii_lowercase().chars().filter(is_kept).collect())
}

/// The function of the section that this entry begins, as `INCLUDE` names it: `b8_27_eb__` of `[b8:27:eb:*]`.
pub fn function(entry: &Entry) -> Option<String> {
    matches!(entry.kind, EntryKind::Section(_)).then(|| function_of(&entry.text))
}

/// The function of a section with this head.
pub fn function_of(head: &str) -> String {
    let letter = |c: char| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '_' };
    let line = head.lines().next().unwrap_or_default();
    line.to_ascii_lowercase().chars().filter(|c| !"[]".contains(*c)).map(letter).collect()
}

/// The head of the section that LTSP calls for an address or a name.
pub fn called(entries: &[Entry], name: &str) -> Option<usize> {
    entries.iter().position(|entry| section(entry).is_some_and(|pattern| matches(&pattern, name)))
}

/// The entries of a function.
pub fn body(entries: &[Entry], function_name: &str) -> Option<Range<usize>> {
    let head = entries.iter().rposition(|e| function(e).as_deref() == Some(function_name));
    let from = head.map(|head| head + 1).or_else(|| (function_name == UNNAMED).then_some(0))?;
    let rest = entries[from..].iter().position(|e| matches!(e.kind, EntryKind::Section(_)));
    Some(from..rest.map_or(entries.len(), |n| from + n))
}

struct Caller<'a> {
    entries: &'a [Entry],
    called: Vec<String>,
    assigned: Assigned,
}

impl Caller<'_> {
    /// Calls the function of the section that matches `name`.
    fn call(&mut self, name: &str) {
        if let Some(function) = called(self.entries, name).and_then(|at| function(&self.entries[at])) {
            self.run(function);
        }
    }

    fn run(&mut self, function: String) {
        let Some(body) = body(self.entries, &function).filter(|_| !self.called.contains(&function)) else {
            return;
        };
        self.called.push(function);
        let entries = self.entries;
        entries[body].iter().for_each(|entry| self.assign(entry));
    }

    fn assign(&mut self, entry: &Entry) {
        let EntryKind::Assignment { name, raw } = &entry.kind else { return };
        if name.eq_ignore_ascii_case("include") {
            if let Ok(other) = crate::plain(raw) {
                self.run(other.to_ascii_lowercase());
            }
        } else {
            self.assigned.insert(name.clone(), Value { line: entry.line, raw: raw.clone() });
        }
    }
}

/// Does a pattern of `case` match? `|` separates alternatives; `*` is any text, `?` any character.
fn matches(pattern: &str, text: &str) -> bool {
    pattern.split('|').any(|one| glob(one.as_bytes(), text.as_bytes()))
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
    fn include_names_a_function() {
        let text = "EKE=auto\n[b8:27:eb:*]\nEKE_SWAP=zram\n[b8:27:eb:1:2:3]\nEKE_GUARD=on\n\
            [clients]\nINCLUDE = b8_27_eb_1_2_3\nINCLUDE=b8:27:eb:*\n";
        let found = assigned(&entries(text).unwrap(), &Who::default());
        assert_eq!(found.keys().collect::<Vec<_>>(), ["EKE", "EKE_GUARD"]);
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

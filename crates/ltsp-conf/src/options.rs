//! eke's options in `ltsp.conf`, and what is wrong with them. The clients' script (`units/ltsp/70-eke.sh`) has the same rules; a test
//! compares both.

use std::net::IpAddr;

use crate::entries::{Entry, EntryKind};
use crate::sections::Assigned;
use crate::{NotLiteral, plain};

/// The port of a client's metrics if none is given.
pub const PORT: u16 = 7118;

/// An option: its name, its values in words, and whether a value is one of them.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// `EKE_SWAP`
    pub name: &'static str,
    /// `auto, zram, zswap or off`
    pub values: &'static str,
    /// Is it valid? An empty value is as none.
    pub is_valid: fn(&str) -> bool,
}

/// All options.
pub const OPTIONS: [Choice; 7] = [
    Choice { name: "EKE", values: "auto or off", is_valid: |v| ["auto", "off"].contains(&v) },
    Choice {
        name: "EKE_SWAP",
        values: "auto, zram, zswap or off",
        is_valid: |v| ["auto", "zram", "zswap", "off"].contains(&v),
    },
    Choice {
        name: "EKE_POOL_PERCENT",
        values: "a number from 10 to 90",
        is_valid: |v| v.len() == 2 && number(v).is_some_and(|n| (10..=90).contains(&n)),
    },
    Choice { name: "EKE_PREFETCH", values: "auto or off", is_valid: |v| ["auto", "off"].contains(&v) },
    Choice { name: "EKE_GUARD", values: "auto, on or off", is_valid: |v| ["auto", "on", "off"].contains(&v) },
    Choice {
        name: "EKE_METRICS",
        values: "on, off or a port from 1024 to 65535",
        is_valid: |v| ["on", "off"].contains(&v) || port(v).is_some(),
    },
    Choice {
        name: "EKE_METRICS_FROM",
        values: "IP addresses or networks with blanks between them",
        is_valid: |v| v.split_ascii_whitespace().all(is_network),
    },
];

/// A wrong line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// From 1.
    pub line: usize,
    /// A sentence: what is wrong, and what to write.
    pub why: String,
}

/// The wrong lines of all sections. A value that the shell evaluates is checked by the client alone.
pub fn wrong(entries: &[Entry]) -> Vec<Wrong> {
    let has_section = entries.iter().any(|entry| matches!(entry.kind, EntryKind::Section(_)));
    let is_empty = entries.iter().all(|entry| entry.text.trim().is_empty());
    let why = if is_empty { EMPTY } else { NO_SECTION };
    let first = entries.first().map_or(1, |entry| entry.line);
    let without = (!has_section).then(|| Wrong { line: first, why: why.to_owned() });
    let lines = entries.iter().filter_map(|entry| Some(Wrong { line: entry.line, why: fault(entry)? }));
    without.into_iter().chain(lines).collect()
}

/// `ini2sh` makes shell that ends in a quote then.
const EMPTY: &str =
    "the file is empty, and LTSP cannot read such a file: write [clients], and EKE=auto below it";
const NO_SECTION: &str =
    "there is no section, and LTSP cannot read such a file: write [clients] above its lines";

/// LTSP makes a shell script of the file without any change but blanks around `=` (`ini2sh` in its `55-config.sh`), and a section whose last
/// line fails stops a client's boot.
fn fault(entry: &Entry) -> Option<String> {
    let is_ours = |name: &str| name == "EKE" || name.starts_with("EKE_");
    let (name, raw) = match &entry.kind {
        EntryKind::Assignment { name, raw } if is_ours(name) => (name, raw),
        EntryKind::Nothing if entry.text.trim_matches(['\n', ' ', '\t']) == "\r" => {
            return Some(
                "this empty line has a carriage return, which the client's shell would run as a command: write ltsp.conf without (sed -i 's/\\r$//')"
                    .to_owned(),
            );
        }
        EntryKind::Code if is_hidden_section(&entry.text) => {
            return Some(
                "a tab or a byte order mark is before this section, and LTSP does not take it for one then: write the line anew"
                    .to_owned(),
            );
        }
        EntryKind::Code if entry.text.trim_start().starts_with("EKE") => {
            return Some(
                "the client's shell would run this line as a command, which can stop its boot: write NAME=value"
                    .to_owned(),
            );
        }
        _ => return None,
    };
    if entry.text.trim_end_matches('\n').ends_with('\r') {
        return Some(format!(
            "{name} ends in a carriage return, which is a part of the value on the client: write ltsp.conf without (sed -i 's/\\r$//')"
        ));
    }
    let Some(option) = OPTIONS.iter().find(|option| option.name == name) else {
        return Some(format!("{name} is no option of eke; there are {}", names()));
    };
    match plain(raw) {
        Err(NotLiteral::Evaluated) => None,
        // Several assignments in a line: the shell makes all of them.
        Err(NotLiteral::Words) if assigns_more(raw) => None,
        Err(NotLiteral::Words) => Some(format!(
            "{name}={raw} has several words without quotes: the client's shell would run the second one as a command, which can stop its boot; write {name}=\"{raw}\""
        )),
        Ok(value) if value.is_empty() || (option.is_valid)(&value) => None,
        Ok(_) => Some(format!("{name}={raw} is not valid; give {}", option.values)),
    }
}

/// `[` is a command of the shell, too, but then a blank follows.
fn is_hidden_section(line: &str) -> bool {
    let inner = line.trim_start_matches('\u{feff}').trim().split('#').next().unwrap_or_default().trim_end();
    inner.starts_with('[') && inner.ends_with(']') && !inner.contains([' ', '\t'])
}

fn assigns_more(raw: &str) -> bool {
    let mut further = raw.split_whitespace().skip(1).peekable();
    further.peek().is_some() && further.all(|word| word.contains('='))
}

fn names() -> String {
    OPTIONS.map(|option| option.name).join(", ")
}

/// Does eke run on a client with these assignments?
pub fn is_on(assigned: &Assigned) -> bool {
    value(assigned, "EKE").as_deref() == Some("auto")
}

/// Does some section switch eke on?
pub fn is_on_anywhere(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| match &entry.kind {
        EntryKind::Assignment { name, raw } => name == "EKE" && plain(raw).as_deref() == Ok("auto"),
        _ => false,
    })
}

/// The port of its metrics, if it serves them.
pub fn metrics_port(assigned: &Assigned) -> Option<u16> {
    match value(assigned, "EKE_METRICS")?.as_str() {
        "on" => Some(PORT),
        text => port(text),
    }
}

/// The literal value of an assignment.
pub fn value(assigned: &Assigned, name: &str) -> Option<String> {
    plain(&assigned.get(name)?.raw).ok()
}

/// Digits alone, where Rust also accepts a sign.
fn number(text: &str) -> Option<u32> {
    text.chars().all(|c| c.is_ascii_digit()).then(|| text.parse().ok())?
}

fn port(text: &str) -> Option<u16> {
    let port = number(text).filter(|_| !text.starts_with('0'))?;
    u16::try_from(port).ok().filter(|port| *port >= 1024)
}

fn is_network(text: &str) -> bool {
    let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
    let most = |ip: IpAddr| if ip.is_ipv4() { 32 } else { 128 };
    address.parse().is_ok_and(|ip| bits.is_none_or(|bits| number(bits).is_some_and(|n| n <= most(ip))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries;
    use crate::sections::{Who, assigned};

    #[test]
    fn wrong_lines_are_named_with_what_is_valid() {
        let text =
            "[clients]\nEKE=yes\nEKE_POOL_PERCENT=95\nEKE_SWOP=zram\nEKE_SWAP=\"$X\"\nEKEX=1\nEKE_GUARD=on\n";
        let found = wrong(&entries(text).unwrap());
        assert_eq!(found.iter().map(|w| w.line).collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!(found[0].why, "EKE=yes is not valid; give auto or off");
        assert!(found[2].why.starts_with("EKE_SWOP is no option of eke; there are EKE, EKE_SWAP,"));
    }

    /// LTSP's script of these lines ends a client's boot, or has another value than the line seems to have.
    #[test]
    fn lines_that_the_clients_shell_reads_in_another_way_are_named() {
        for (line, why) in [
            ("EKE_METRICS_FROM=10.0.0.1 10.0.0.2\n", "write EKE_METRICS_FROM=\"10.0.0.1 10.0.0.2\""),
            ("EKE_SWAP=zram;off\n", "several words without quotes"),
            ("EKE=auto\r\n", "carriage return"),
            ("EKE=\"auto\"\r\n", "carriage return"),
            ("EKE auto\n", "write NAME=value"),
            ("  EKE-SWAP=zram\n", "write NAME=value"),
            ("  EKE = auto\n", "write NAME=value"),
            ("EKE=\tauto\n", "write NAME=value"),
            ("\t[pc01] # his\n", "a tab"),
            ("\u{feff}[pc01]\n", "a byte order mark"),
            (" \r\n", "this empty line has a carriage return"),
        ] {
            let found = wrong(&entries(&format!("[clients]\n{line}[b]\n")).unwrap());
            assert!(
                found.len() == 1 && found[0].line == 2 && found[0].why.contains(why),
                "{line}: {found:?}"
            );
        }
        for line in [
            "EKE_METRICS_FROM=\"10.0.0.1 10.0.0.2\"\n",
            "  EKE=auto\n",
            "EKE = auto\n",
            "echo EKE\n",
            "HOSTNAME=a\r\n",
            "EKE=\n",
        ] {
            assert_eq!(wrong(&entries(&format!("[clients]\n{line}")).unwrap()), [], "{line}");
        }
        assert_eq!(wrong(&entries("\t[ -e /a ]\n[clients]\n").unwrap()), [], "a command");
        for (text, why) in [
            ("# mine\nEKE=auto\n", "no section"),
            ("# mine\n", "no section"),
            ("", "empty"),
            ("\n \n", "empty"),
        ] {
            let found = wrong(&entries(text).unwrap());
            assert!(
                found.len() == 1 && found[0].line == 1 && found[0].why.contains(why),
                "{text:?}: {found:?}"
            );
        }
    }

    #[test]
    fn what_is_switched_on_is_known() {
        let of = |text: &str| {
            let assigned = assigned(&entries(&format!("[clients]\n{text}")).unwrap(), &Who::default());
            (is_on(&assigned), metrics_port(&assigned))
        };
        assert_eq!(of("EKE=auto\nEKE_METRICS=on\n"), (true, Some(PORT)));
        assert_eq!(of("EKE='auto'\nEKE_METRICS=\"9000\"\n"), (true, Some(9000)));
        assert_eq!(of("EKE_METRICS=off\n"), (false, None));
        assert_eq!(of("EKE=off\nEKE_METRICS=80\n"), (false, None));
    }
}

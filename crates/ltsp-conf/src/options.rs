//! eke's options in `ltsp.conf`, and what is wrong with them. The clients' script (`units/ltsp/70-eke.sh`) has the same rules; a test
//! compares both.

use std::net::IpAddr;

use crate::entries::{Entry, EntryKind};
use crate::plain;
use crate::sections::Assigned;

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
    entries.iter().filter_map(|entry| Some(Wrong { line: entry.line, why: fault(entry)? })).collect()
}

fn fault(entry: &Entry) -> Option<String> {
    let EntryKind::Assignment { name, raw } = &entry.kind else { return None };
    if name != "EKE" && !name.starts_with("EKE_") {
        return None;
    }
    let Some(option) = OPTIONS.iter().find(|option| option.name == name) else {
        return Some(format!("{name} is no option of eke; there are {}", names()));
    };
    let value = plain(raw).ok().filter(|value| !value.is_empty())?;
    (!(option.is_valid)(&value)).then(|| format!("{name}={raw} is not valid; give {}", option.values))
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

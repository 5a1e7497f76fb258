//! Facts about an end of the link, from the output of `ends.sh`.

use std::net::IpAddr;

use serde::Serialize;

/// Facts about a machine that need no root.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Facts {
    /// `uname -srm`.
    pub system: String,
    /// The processor's name, if it has one.
    pub processor: Option<String>,
    /// Has the processor AES instructions? `None` if /proc/cpuinfo lists no features.
    pub has_aes: Option<bool>,
    /// The number of CPUs; 0: unknown.
    pub cpus: u32,
    /// Its network cards.
    pub interfaces: Vec<Interface>,
    /// The addresses of the connection as the far end has them: the client's, then its own.
    #[cfg_attr(feature = "schema", schemars(with = "Option<(String, String)>"))]
    pub connection: Option<(IpAddr, IpAddr)>,
    /// Programs that could help: `eke`, `wg`, `hpnssh`, ...
    pub tools: Vec<String>,
    /// Is the kernel's WireGuard loaded?
    pub has_wireguard: bool,
    /// Is the kernel in FIPS mode?
    pub is_fips: bool,
}

/// A network card as `/sys/class/net` shows it (Documentation/ABI/testing/sysfs-class-net).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interface {
    /// `eth0`.
    pub name: String,
    /// Its addresses.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub addresses: Vec<IpAddr>,
    /// Its hardware address, in lower case.
    pub mac: Option<String>,
    /// The rate that it agreed on with the port, in Mb/s.
    pub speed_mbit: Option<u32>,
    /// Is it full duplex?
    pub is_full_duplex: Option<bool>,
    /// Damaged or lost packets since boot.
    pub errors: u64,
    /// Packets since boot, both ways.
    pub packets: u64,
}

impl Facts {
    /// The card that has this address.
    pub fn interface(&self, address: IpAddr) -> Option<&Interface> {
        self.interfaces.iter().find(|i| i.addresses.iter().any(|a| plain(*a) == plain(address)))
    }
}

/// `::ffff:10.0.0.1` is 10.0.0.1.
fn plain(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// More cards are not read: each line looks for its card among all of them, and the far end can send any number of lines.
const MOST_INTERFACES: usize = 256;

/// Reads the sections and skips all other lines.
pub fn facts(text: &str) -> Facts {
    let mut found = Facts::default();
    let mut section = "";
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("== ") {
            section = name.trim();
            continue;
        }
        match section {
            "uname" => line.trim().clone_into(&mut found.system),
            "cpu" => processor(&mut found, line),
            "machine" if line.starts_with("cpu") && !line.starts_with("cpu ") => found.cpus += 1,
            "connection" => found.connection = connection(line),
            "addresses" => address(&mut found.interfaces, line),
            "net" => attribute(&mut found.interfaces, line),
            "tools" => found.tools.extend(line.trim().rsplit('/').next().map(str::to_owned)),
            "wireguard" => found.has_wireguard |= line.trim() == "loaded",
            "fips" => found.is_fips |= line.trim() == "1",
            _ => {}
        }
    }
    found
}

/// Lines of /proc/cpuinfo.
fn processor(found: &mut Facts, line: &str) {
    let Some((key, value)) = line.split_once(':') else { return };
    match key.trim() {
        "model name" | "Model" => found.processor = Some(value.trim().to_owned()),
        "flags" | "Features" => found.has_aes = Some(value.split_whitespace().any(|w| w == "aes")),
        _ => {}
    }
}

/// `SSH_CONNECTION`: the client's address and port, the server's address and port (ssh(1)).
fn connection(line: &str) -> Option<(IpAddr, IpAddr)> {
    let mut words = line.split_whitespace();
    let from = words.next()?.parse().ok()?;
    Some((from, words.nth(1)?.parse().ok()?))
}

/// `2: eth0    inet 10.0.0.2/24 brd ...` of `ip -o addr show`.
fn address(interfaces: &mut Vec<Interface>, line: &str) {
    let mut words = line.split_whitespace().skip(1);
    let (Some(name), Some(kind), Some(address)) = (words.next(), words.next(), words.next()) else { return };
    if !kind.starts_with("inet") {
        return;
    }
    let address: Option<IpAddr> = address.split('/').next().and_then(|a| a.parse().ok());
    // some versions print a virtual card as `eth0@if7`
    if let Some(interface) = named(interfaces, name.split('@').next().unwrap_or(name)) {
        interface.addresses.extend(address);
    }
}

/// `eth0 statistics/rx_errors 3`
fn attribute(interfaces: &mut Vec<Interface>, line: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, attribute, value] = words[..] else { return };
    let Some(interface) = named(interfaces, name) else { return };
    let count = value.parse::<u64>().unwrap_or(0);
    match attribute {
        "address" if value != "00:00:00:00:00:00" && is_mac(value) => {
            interface.mac = Some(value.to_ascii_lowercase())
        }
        // -1 without a carrier, or for a card without a rate
        "speed" => interface.speed_mbit = value.parse().ok().filter(|mbit| *mbit > 0),
        "duplex" => interface.is_full_duplex = (value != "unknown").then_some(value == "full"),
        "statistics/rx_packets" | "statistics/tx_packets" => {
            // The far end's numbers may be anything.
            interface.packets = interface.packets.saturating_add(count)
        }
        "statistics/rx_errors" | "statistics/tx_errors" | "statistics/collisions" => {
            interface.errors = interface.errors.saturating_add(count)
        }
        _ => {}
    }
}

/// The card of this name, a new one if necessary; `None`: there are too many.
fn named<'a>(interfaces: &'a mut Vec<Interface>, name: &str) -> Option<&'a mut Interface> {
    let at = interfaces.iter().position(|i| i.name == name).unwrap_or(interfaces.len());
    if at == interfaces.len() && at < MOST_INTERFACES {
        interfaces.push(Interface { name: name.to_owned(), ..Interface::default() });
    }
    interfaces.get_mut(at)
}

/// Six bytes in hexadecimal.
pub fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    parts.len() == 6 && parts.iter().all(|p| p.len() == 2 && p.chars().all(|c| c.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const THIN: &str = "\
== uname
Linux 5.10.0 x86_64
== cpu
model name\t: Intel(R) Atom(TM) CPU  330   @ 1.60GHz
flags\t\t: fpu sse2 ssse3 movbe
== machine
cpu  1 2 3 4
cpu0 1 2 3 4
cpu1 1 2 3 4
== connection
::ffff:10.0.0.1 50000 ::ffff:10.0.0.2 22
== addresses
1: lo    inet 127.0.0.1/8 scope host lo
2: eth0    inet 10.0.0.2/24 brd 10.0.0.255 scope global eth0
2: eth0    inet6 fe80::1/64 scope link
== net
eth0 address 52:54:00:AB:cd:01
eth0 speed 100
eth0 duplex half
eth0 statistics/rx_packets 1000
eth0 statistics/rx_errors 7
eth0 statistics/collisions 5
lo address 00:00:00:00:00:00
wlan0 speed -1
wlan0 duplex unknown
== tools
/usr/bin/wg
== wireguard
== fips
0
";

    #[test]
    fn numbers_of_the_far_end_cannot_overflow() {
        let most = u64::MAX;
        let text = format!(
            "== net\neth0 statistics/rx_packets {most}\neth0 statistics/tx_packets 1\neth0 statistics/rx_errors {most}\neth0 statistics/collisions 1\n"
        );
        let found = facts(&text);
        assert_eq!((found.interfaces[0].packets, found.interfaces[0].errors), (most, most));
    }

    #[test]
    fn cards_of_the_far_end_have_a_bound() {
        let cards = |section: &str, line: &dyn Fn(usize) -> String| {
            let lines: Vec<String> = (0..2000).map(line).collect();
            facts(&format!("== {section}\n{}\n== net\nc0 speed 100\n", lines.join("\n"))).interfaces
        };
        for found in [
            cards("net", &|n| format!("c{n} duplex full")),
            cards("addresses", &|n| format!("{n}: c{n} inet 10.0.0.2/24")),
        ] {
            assert_eq!((found.len(), found[0].speed_mbit), (MOST_INTERFACES, Some(100)));
        }
    }

    #[test]
    fn a_thin_client() {
        let found = facts(THIN);
        assert_eq!((found.cpus, found.has_aes, found.is_fips), (2, Some(false), false));
        assert_eq!(found.tools, ["wg"]);
        let (_, own) = found.connection.unwrap();
        let card = found.interface(own).unwrap();
        assert_eq!(
            (card.name.as_str(), card.speed_mbit, card.is_full_duplex),
            ("eth0", Some(100), Some(false))
        );
        assert_eq!((card.mac.as_deref(), card.errors, card.packets), (Some("52:54:00:ab:cd:01"), 12, 1000));
        let wlan = found.interfaces.iter().find(|i| i.name == "wlan0").unwrap();
        assert_eq!((wlan.speed_mbit, wlan.is_full_duplex), (None, None));
    }

    #[test]
    fn an_empty_text_has_no_facts() {
        assert_eq!(facts(""), Facts::default());
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read(text: String) {
            for section in ["uname", "cpu", "machine", "connection", "addresses", "net", "tools"] {
                let _ = facts(&format!("== {section}\n{text}"));
            }
        }
    }
}

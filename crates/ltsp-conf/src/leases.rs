//! dnsmasq's file of leases. Each line: time of expiry in seconds since 1970 (0: never), hardware address, IP address, name or `*`, client id.
//! Lines of DHCPv6 begin with `duid`, or have an id where the hardware address would be.

use std::net::IpAddr;

/// A lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// In lower case.
    pub mac: String,
    /// The client's address.
    pub ip: IpAddr,
    /// The name that the client gave.
    pub name: Option<String>,
}

/// The leases that have not expired at `now_s`. Lines that are none are skipped: dnsmasq rewrites the file at any time.
pub fn leases(text: &str, now_s: u64) -> Vec<Lease> {
    text.lines().filter_map(|line| lease(line, now_s)).collect()
}

fn lease(line: &str, now_s: u64) -> Option<Lease> {
    let mut words = line.split_ascii_whitespace();
    let expires_s: u64 = words.next()?.parse().ok()?;
    // A hardware type other than Ethernet stands before the address: `06-52:54:...`.
    let mac = words.next()?;
    let mac = mac.split_once('-').map_or(mac, |(_, mac)| mac).to_ascii_lowercase();
    let ip = words.next()?.parse().ok()?;
    let name = words.next().filter(|name| *name != "*").map(str::to_owned);
    (is_mac(&mac) && (expires_s == 0 || expires_s > now_s)).then_some(Lease { mac, ip, name })
}

/// Is it a hardware address of Ethernet, in lower case?
pub fn is_mac(text: &str) -> bool {
    let is_byte = |part: &str| part.len() == 2 && part.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
    text.split(':').count() == 6 && text.split(':').all(is_byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_that_hold_are_read_and_others_skipped() {
        let text = "2000 52:54:00:AA:bb:01 192.168.67.21 pc01 01:52:54:00:aa:bb:01\n\
            0 52:54:00:aa:bb:02 192.168.67.22 * *\n\
            900 52:54:00:aa:bb:03 192.168.67.23 pc03 *\n\
            duid 00:01:00:01:2c\n\
            2000 1000 fd00::5 pc04 00:01\n\
            2000 06-52:54:00:aa:bb:05 192.168.67.25 pc05 *\n\
            2000 52:54:00";
        let found = leases(text, 1000);
        let names: Vec<_> = found.iter().map(|l| (l.mac.as_str(), l.name.as_deref())).collect();
        let macs = ["52:54:00:aa:bb:01", "52:54:00:aa:bb:02", "52:54:00:aa:bb:05"];
        assert_eq!(names, [(macs[0], Some("pc01")), (macs[1], None), (macs[2], Some("pc05"))]);
    }
}

//! `/proc/net/arp` (proc_net(5)): a header, then lines of IP address, hardware type, flags, hardware address, mask, device. With another DHCP
//! server on the network dnsmasq has no leases, and a client's address stands here alone.

use std::net::IpAddr;

use crate::leases::is_mac;

/// A machine that this one has exchanged packets with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbour {
    /// In lower case.
    pub mac: String,
    /// Its address.
    pub ip: IpAddr,
}

/// All complete entries (flag `ATF_COM`, 2).
pub fn neighbours(text: &str) -> Vec<Neighbour> {
    text.lines().filter_map(neighbour).collect()
}

fn neighbour(line: &str) -> Option<Neighbour> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let (ip, flags, mac) = (words.first()?.parse().ok()?, words.get(2)?, words.get(3)?.to_ascii_lowercase());
    let is_complete = u32::from_str_radix(flags.strip_prefix("0x")?, 16).ok()? & 2 != 0;
    (is_complete && is_mac(&mac)).then_some(Neighbour { mac, ip })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_entries_are_read() {
        let text = "IP address       HW type     Flags       HW address            Mask     Device\n\
            192.168.67.21    0x1         0x2         52:54:00:aa:bb:01     *        eth0\n\
            192.168.67.22    0x1         0x0         00:00:00:00:00:00     *        eth0\n";
        let ip = "192.168.67.21".parse().unwrap();
        assert_eq!(neighbours(text), [Neighbour { mac: "52:54:00:aa:bb:01".into(), ip }]);
    }
}

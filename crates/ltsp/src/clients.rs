//! The clients of a server: those with a lease, those with a section of their own in `ltsp.conf`, those that the caller names, and neighbours that
//! may be clients.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use eke_ltsp_conf::leases::Lease;
use eke_ltsp_conf::neighbours::Neighbour;
use eke_ltsp_conf::sections::{self, Assigned, Who, assigned};
use eke_ltsp_conf::{Entry, options};

/// A client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// `HOSTNAME` in `ltsp.conf`, the name in its lease, or its address.
    pub name: String,
    /// Its hardware address.
    pub mac: Option<String>,
    /// Its address, if it is known.
    pub ip: Option<IpAddr>,
    /// `EKE=auto` holds for it.
    pub is_on: bool,
    /// The port of its metrics, if it serves them.
    pub port: Option<u16>,
    /// The cipher that `eke link --ltsp` chose for it, and what that measured.
    pub link: Option<Link>,
    /// A neighbour of whom nothing says that it is a client: it is one if it serves eke's metrics.
    pub is_guess: bool,
}

/// A client's link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The first of its ciphers.
    pub cipher: String,
    /// As `eke link` wrote it beside the options.
    pub mb_per_s: Option<u32>,
}

impl Client {
    /// Where its metrics are.
    pub fn address(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.ip?, self.port?))
    }
}

/// What is known on the server.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// `ltsp.conf`; empty if it does not exist or is no such file.
    pub entries: &'a [Entry],
    /// Leases that hold.
    pub leases: &'a [Lease],
    /// With another DHCP server (LTSP's default in one network) the clients' addresses are here alone, among those of others.
    pub neighbours: &'a [Neighbour],
    /// Addresses that the caller names.
    pub named: &'a [IpAddr],
}

/// All clients, ordered by name.
pub fn clients(known: &Known<'_>) -> Vec<Client> {
    let mut found: Vec<Client> = known.leases.iter().map(|lease| client(known, &of_lease(lease))).collect();
    for mac in sections::macs(known.entries) {
        if !found.iter().any(|client| client.mac.as_ref() == Some(&mac)) {
            let ip = known.neighbours.iter().find(|n| n.mac == mac).map(|n| n.ip);
            found.push(client(known, &Seen { mac: Some(mac), ip, name: None }));
        }
    }
    for ip in known.named {
        if !found.iter().any(|client| client.ip == Some(*ip)) {
            let mac = known.neighbours.iter().find(|n| n.ip == *ip).map(|n| n.mac.clone());
            found.push(client(known, &Seen { mac, ip: Some(*ip), name: None }));
        }
    }
    for neighbour in known.neighbours {
        let is_known = |c: &Client| c.ip == Some(neighbour.ip) || c.mac.as_ref() == Some(&neighbour.mac);
        if !found.iter().any(is_known) {
            let seen = Seen { mac: Some(neighbour.mac.clone()), ip: Some(neighbour.ip), name: None };
            let guess = Client { is_guess: true, ..client(known, &seen) };
            found.extend(Some(guess).filter(|guess| guess.port.is_some()));
        }
    }
    found.sort_by(|a, b| (&a.name, &a.mac).cmp(&(&b.name, &b.mac)));
    found
}

struct Seen {
    mac: Option<String>,
    ip: Option<IpAddr>,
    name: Option<String>,
}

fn of_lease(lease: &Lease) -> Seen {
    Seen { mac: Some(lease.mac.clone()), ip: Some(lease.ip), name: lease.name.clone() }
}

fn client(known: &Known<'_>, seen: &Seen) -> Client {
    let address = seen.ip.map(|ip| ip.to_string());
    let who = Who { mac: seen.mac.clone(), ip: address.clone(), name: seen.name.clone() };
    let assigned = assigned(known.entries, &who);
    let name = hostname(&assigned, seen.mac.as_deref()).or_else(|| seen.name.clone());
    Client {
        name: name.or(address).or_else(|| seen.mac.clone()).unwrap_or_default(),
        mac: seen.mac.clone(),
        ip: seen.ip,
        is_on: options::is_on(&assigned),
        port: options::metrics_port(&assigned).filter(|_| options::is_on(&assigned)),
        link: link(known.entries, &assigned),
        is_guess: false,
    }
}

/// `HOSTNAME` as the client evaluates it: `%{MAC}` is its hardware address without colons (`config_hostname` in LTSP's `45-networking.sh`).
/// `None` with another `%`: `%{IP}` needs the client's netmask.
fn hostname(assigned: &Assigned, mac: Option<&str>) -> Option<String> {
    let mut name = options::value(assigned, "HOSTNAME")?;
    if let Some(mac) = mac {
        name = name.replace("%{MAC}", &mac.replace(':', ""));
    }
    (!name.contains('%')).then_some(name)
}

/// The first cipher in `SSH_OPTIONS`, and the rate in eke's comment above that line.
fn link(entries: &[Entry], assigned: &Assigned) -> Option<Link> {
    let line = assigned.get("SSH_OPTIONS")?.line;
    let options = options::value(assigned, "SSH_OPTIONS")?;
    let ciphers = options.split_once("Ciphers=")?.1.split([' ', ',']).next()?;
    let at = entries.iter().position(|entry| entry.line == line)?;
    let comment = at.checked_sub(1).and_then(|at| entries[at].text.strip_prefix("# eke link: "));
    Some(Link { cipher: ciphers.to_owned(), mb_per_s: comment.and_then(rate) })
}

/// `aes128-gcm@openssh.com, 61 MB/s; the limit was ...`
fn rate(comment: &str) -> Option<u32> {
    comment.split_once(" MB/s")?.0.rsplit(' ').next()?.parse().ok()
}

/// The addresses among `words` and those of clients with such a name; what is neither is returned as it is.
///
/// # Errors
/// The first word that is neither an address nor a client's name.
pub fn named<'a>(words: &'a [String], all: &[Client]) -> Result<Vec<IpAddr>, &'a str> {
    let by_name: BTreeMap<&str, IpAddr> = all.iter().filter_map(|c| Some((c.name.as_str(), c.ip?))).collect();
    let address = |word: &'a String| {
        word.parse().ok().or_else(|| by_name.get(word.as_str()).copied()).ok_or(word.as_str())
    };
    words.iter().map(address).collect()
}

#[cfg(test)]
mod tests {
    use eke_ltsp_conf::leases::leases;
    use eke_ltsp_conf::neighbours::neighbours;

    use super::*;

    const CONF: &str = "[clients]\nEKE=auto\nEKE_METRICS=on\n[52:54:00:aa:bb:02]\nHOSTNAME=front\n\
        # eke link: chacha20-poly1305@openssh.com, 61 MB/s; the limit was one thread (policy modern)\n\
        SSH_OPTIONS=\"-p 22 -oCiphers=chacha20-poly1305@openssh.com,aes128-ctr\"\n[pc03]\nEKE=off\n";
    const LEASES: &str =
        "0 52:54:00:aa:bb:01 192.168.67.21 pc01 *\n0 52:54:00:aa:bb:03 192.168.67.23 pc03 *\n";
    const ARP: &str = "192.168.67.22 0x1 0x2 52:54:00:aa:bb:02 * eth0\n";

    fn all(words: &[&str]) -> Vec<Client> {
        let entries = eke_ltsp_conf::entries(CONF).unwrap();
        let named: Vec<IpAddr> = words.iter().map(|word| word.parse().unwrap()).collect();
        clients(&Known {
            entries: &entries,
            leases: &leases(LEASES, 1),
            neighbours: &neighbours(ARP),
            named: &named,
        })
    }

    #[test]
    fn leases_sections_and_names_give_clients() {
        let found = all(&["192.168.67.9", "192.168.67.21"]);
        let names: Vec<&str> = found.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["192.168.67.9", "front", "pc01", "pc03"]);
        let front = &found[1];
        assert_eq!(front.address(), Some("192.168.67.22:7118".parse().unwrap()));
        let link = front.link.as_ref().unwrap();
        assert_eq!((link.cipher.as_str(), link.mb_per_s), ("chacha20-poly1305@openssh.com", Some(61)));
        assert!(found[2].is_on && !found[3].is_on && found[3].address().is_none());
    }

    #[test]
    fn neighbours_that_would_serve_metrics_are_guesses() {
        let arp = format!(
            "{ARP}192.168.67.21 0x1 0x2 52:54:00:aa:bb:01 * eth0\n192.168.67.30 0x1 0x2 52:54:00:aa:bb:30 * eth0\n"
        );
        let guesses = |conf: &str| {
            let entries = eke_ltsp_conf::entries(conf).unwrap();
            let (leases, neighbours) = (leases(LEASES, 1), neighbours(&arp));
            let found =
                clients(&Known { entries: &entries, leases: &leases, neighbours: &neighbours, named: &[] });
            found.into_iter().filter(|c| c.is_guess).map(|c| c.name).collect::<Vec<_>>()
        };
        assert_eq!(guesses(CONF), ["192.168.67.30"]);
        assert_eq!(guesses("[clients]\nEKE=auto\n"), [""; 0]);
        assert_eq!(guesses(&format!("{CONF}[52:54:00:aa:bb:30]\nEKE=off\n")), [""; 0]);
    }

    #[test]
    fn a_name_of_all_clients_is_the_one_that_each_client_makes_of_it() {
        let names = |hostname: &str| {
            let entries = eke_ltsp_conf::entries(&format!("[clients]\nHOSTNAME=\"{hostname}\"\n")).unwrap();
            let leases = leases(LEASES, 1);
            let found = clients(&Known { entries: &entries, leases: &leases, neighbours: &[], named: &[] });
            found.into_iter().map(|client| client.name).collect::<Vec<_>>()
        };
        assert_eq!(names("x%{IP}"), ["pc01", "pc03"]);
        assert_eq!(names("x%{MAC}"), ["x525400aabb01", "x525400aabb03"]);
    }

    #[test]
    fn a_word_is_an_address_or_a_name() {
        let words = ["pc01".to_owned(), "10.0.0.1".to_owned()];
        let expected: Vec<IpAddr> = ["192.168.67.21", "10.0.0.1"].map(|ip| ip.parse().unwrap()).into();
        assert_eq!(named(&words, &all(&[])), Ok(expected));
        assert_eq!(named(&["pc9".to_owned()], &all(&[])), Err("pc9"));
    }
}

//! The hosts of the farm: names and addresses, and what `ip` says of their links. Pure.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use serde_json::Value;

use crate::plan::{ENGINES, NODES};

/// A host with a link to the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Host {
    /// The one with the slow disk.
    Origin,
    /// All clients together.
    Client,
    /// A web server.
    Node(usize),
    /// A member of the engine's cluster. The first ones begin with content, the others as their replicas.
    Engine(usize),
}

/// The port of web servers.
pub const HTTP: u16 = 80;
/// The port of the origin's block device (IANA's for NBD).
pub const NBD: u16 = 10809;

impl Host {
    /// All hosts.
    pub fn all() -> Vec<Self> {
        let nodes = (0..NODES).map(Self::Node);
        [Self::Origin, Self::Client]
            .into_iter()
            .chain(nodes)
            .chain((0..ENGINES * 2).map(Self::Engine))
            .collect()
    }

    /// Its name, also that of the switch's port. Letters and digits.
    pub fn word(self) -> String {
        match self {
            Self::Origin => "origin".to_owned(),
            Self::Client => "client".to_owned(),
            Self::Node(n) => format!("node{}", n + 1),
            Self::Engine(n) => format!("engine{}", n + 1),
        }
    }

    /// Its address. The network exists only in the farm's namespaces.
    pub fn address(self) -> Ipv4Addr {
        let last = match self {
            Self::Origin => 1,
            Self::Client => 2,
            Self::Node(n) => 11 + n,
            Self::Engine(n) => 21 + n,
        };
        Ipv4Addr::new(10, 78, 0, u8::try_from(last).unwrap_or(254))
    }

    /// Where its web server listens.
    pub fn http(self) -> SocketAddr {
        SocketAddr::from((self.address(), HTTP))
    }

    /// Whether its link is limited. The clients' is not: they stand for many.
    pub fn is_limited(self) -> bool {
        self != Self::Client
    }
}

/// The bytes that each host sent, from `ip -json -statistics link` in the switch: what its port received.
pub fn sent(text: &str) -> BTreeMap<Host, u64> {
    let links: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
    let of = |host: Host| {
        let link = links.iter().find(|link| link["ifname"] == host.word().as_str())?;
        Some((host, link.pointer("/stats64/rx/bytes")?.as_u64()?))
    };
    Host::all().into_iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_differ() {
        let all = Host::all();
        for (i, a) in all.iter().enumerate() {
            for b in &all[i + 1..] {
                assert!(a.word() != b.word() && a.address() != b.address());
            }
        }
    }

    #[test]
    fn what_a_port_received_its_host_sent() {
        let text = r#"[{"ifname":"lo","stats64":{"rx":{"bytes":9}}},{"ifname":"node2","stats64":{"rx":{"bytes":7},"tx":{"bytes":1}}},{"ifname":"origin"}]"#;
        assert_eq!(sent(text), [(Host::Node(1), 7)].into());
        assert!(sent("").is_empty() && sent("{}").is_empty());
    }
}

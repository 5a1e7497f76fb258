//! The messages of `ssh -vv` about a connection (sshconnect2.c, kex.c, packet.c of OpenSSH; unchanged since 6.7).

use std::net::IpAddr;

use crate::suite::Suite;

/// The proposal of one end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Proposal {
    /// Key exchanges, with the markers of strict key exchange among them.
    pub kex: Vec<String>,
    /// Ciphers that it accepts in both directions.
    pub ciphers: Vec<String>,
    /// MACs that it accepts in both directions.
    pub macs: Vec<String>,
}

/// One connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Handshake {
    /// The far end's software: `OpenSSH_9.2p1 Debian-2+deb12u6`.
    pub software: Option<String>,
    /// The address that ssh itself connected to; `None` through a proxy.
    pub address: Option<IpAddr>,
    /// The proposal of this end.
    pub client: Proposal,
    /// The proposal of the far end.
    pub server: Proposal,
    /// The agreed cipher, from the far end to here.
    pub to_here: Option<Suite>,
    /// The authentication method: `publickey`, `password`, ...
    pub method: Option<String>,
}

impl Handshake {
    /// Do both ends have strict key exchange?
    pub fn is_strict(&self) -> bool {
        let has = |p: &Proposal, side: char| {
            let marker = format!("kex-strict-{side}-v00@openssh.com");
            p.kex.contains(&marker)
        };
        has(&self.client, 'c') && has(&self.server, 's')
    }

    /// Did a person have to type?
    pub fn was_interactive(&self) -> bool {
        matches!(self.method.as_deref(), Some("password" | "keyboard-interactive"))
    }
}

/// Reads standard error of `ssh -vv` and skips all other lines.
pub fn handshake(text: &str) -> Handshake {
    let mut found = Handshake::default();
    let mut of_server = None;
    let mut connecting = Some(None);
    for line in text.lines().map(|l| l.trim_end_matches('\r')) {
        if let Some(method) = authenticated(line) {
            found.method = Some(method.to_owned());
            continue;
        }
        let Some((_, message)) = line.split_once(": ").filter(|(level, _)| level.starts_with("debug")) else {
            continue;
        };
        match message {
            "local client KEXINIT proposal" => of_server = Some(false),
            "peer server KEXINIT proposal" => of_server = Some(true),
            _ => {
                if let Some(proposal) =
                    of_server.map(|s| if s { &mut found.server } else { &mut found.client })
                {
                    propose(proposal, message);
                }
                about(&mut found, message);
                if of_server.is_none() {
                    connected(&mut found, &mut connecting, message);
                }
            }
        }
    }
    found
}

/// `Authenticated to h ([::1]:22) using "publickey".`: a debug line before 8.9, a verbose one since.
fn authenticated(line: &str) -> Option<&str> {
    let at = line.find("Authenticated to ").or_else(|| line.find("Authentication succeeded ("))?;
    let rest = &line[at..];
    let quoted = rest.split_once("using \"").and_then(|(_, r)| r.split_once('"'));
    quoted.or_else(|| rest.split_once('(')?.1.split_once(')')).map(|(method, _)| method)
}

fn propose(proposal: &mut Proposal, message: &str) {
    let Some((what, names)) = message.split_once(": ") else { return };
    let names: Vec<String> =
        names.split(',').map(|n| n.trim().to_owned()).filter(|n| !n.is_empty()).collect();
    match what {
        "KEX algorithms" => proposal.kex = names,
        "ciphers ctos" => proposal.ciphers = names,
        "ciphers stoc" => proposal.ciphers.retain(|c| names.contains(c)),
        "MACs ctos" => proposal.macs = names,
        "MACs stoc" => proposal.macs.retain(|m| names.contains(m)),
        _ => {}
    }
}

fn about(found: &mut Handshake, message: &str) {
    if let Some((_, software)) = message.split_once("remote software version ") {
        found.software = Some(software.trim().to_owned());
    } else if let Some(agreed) = message.strip_prefix("kex: server->client cipher: ") {
        found.to_here = agreed_on(agreed);
    }
}

/// `Connecting to h [127.0.0.1] port 22.`, for each address of the host, and then `Connection established.` for the last one. The far end's
/// banner is on standard error too, so nothing counts after that.
fn connected(found: &mut Handshake, connecting: &mut Option<Option<IpAddr>>, message: &str) {
    let Some(last) = connecting else { return };
    if let Some(to) = message.strip_prefix("Connecting to ") {
        let address = to.split_once('[').and_then(|(_, r)| r.split_once(']'));
        *last = address.and_then(|(a, _)| a.parse().ok());
    } else if message == "Connection established." {
        found.address = *last;
        *connecting = None;
    }
}

/// `aes128-ctr MAC: umac-64-etm@openssh.com compression: none`
fn agreed_on(text: &str) -> Option<Suite> {
    let (cipher, rest) = text.split_once(" MAC: ")?;
    let mac = rest.split_whitespace().next().filter(|mac| *mac != "<implicit>");
    Some(Suite::new(cipher, mac))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
OpenSSH_9.2p1 Debian-2+deb12u6, OpenSSL 3.0.19 27 Jan 2026
debug1: Connecting to far [::1] port 2299.
debug1: connect to address ::1 port 2299: Connection refused
debug1: Connecting to far [127.0.0.1] port 2299.
debug1: Connection established.
debug1: Remote protocol version 2.0, remote software version OpenSSH_9.2p1 Debian-2+deb12u10
debug2: local client KEXINIT proposal
debug2: KEX algorithms: curve25519-sha256,ext-info-c,kex-strict-c-v00@openssh.com
debug2: host key algorithms: ssh-ed25519
debug2: ciphers ctos: chacha20-poly1305@openssh.com,aes128-ctr
debug2: ciphers stoc: chacha20-poly1305@openssh.com,aes128-ctr
debug2: MACs ctos: umac-64-etm@openssh.com
debug2: MACs stoc: umac-64-etm@openssh.com
debug2: peer server KEXINIT proposal
debug2: KEX algorithms: curve25519-sha256,kex-strict-s-v00@openssh.com
debug2: ciphers ctos: aes128-ctr,aes256-ctr
debug2: ciphers stoc: aes128-ctr
debug2: MACs ctos: umac-64-etm@openssh.com,hmac-sha1
debug2: MACs stoc: umac-64-etm@openssh.com,hmac-sha1
debug1: kex: server->client cipher: aes128-ctr MAC: umac-64-etm@openssh.com compression: none
debug1: kex: client->server cipher: aes128-ctr MAC: umac-64-etm@openssh.com compression: none
Authenticated to far ([127.0.0.1]:2299) using \"publickey\".
";

    #[test]
    fn a_connection_is_read_from_its_log() {
        let found = handshake(LOG);
        assert_eq!(found.software.as_deref(), Some("OpenSSH_9.2p1 Debian-2+deb12u10"));
        assert_eq!(found.address, Some("127.0.0.1".parse().unwrap()));
        assert_eq!(found.server.ciphers, ["aes128-ctr"], "a cipher in one direction only is no offer");
        assert_eq!(found.client.ciphers.len(), 2);
        assert_eq!(found.to_here, Some(Suite::new("aes128-ctr", Some("umac-64-etm@openssh.com"))));
        assert_eq!(found.method.as_deref(), Some("publickey"));
        assert!(found.is_strict() && !found.was_interactive());
    }

    #[test]
    fn a_banner_of_the_far_end_names_no_address() {
        let banner = "debug1: Connecting to far [10.9.9.9] port 22.\ndebug1: Connection established.\n";
        let address = handshake(&format!("{LOG}{banner}")).address;
        assert_eq!(address, Some("127.0.0.1".parse().unwrap()));
        let (_, proxied) = LOG.split_once("established.\n").unwrap();
        assert_eq!(handshake(&format!("{proxied}{banner}")).address, None, "through a proxy");
    }

    #[test]
    fn strict_takes_both_ends() {
        for marker in ["kex-strict-c-v00@openssh.com", "kex-strict-s-v00@openssh.com"] {
            assert!(!handshake(&LOG.replace(marker, "x")).is_strict(), "{marker}");
        }
    }

    #[test]
    fn older_versions_print_other_messages() {
        let typed = handshake("debug1: Authentication succeeded (password).\r\n");
        assert!(typed.was_interactive());
        let implicit =
            "debug1: kex: server->client cipher: aes128-gcm@openssh.com MAC: <implicit> compression: none\n";
        assert_eq!(handshake(implicit).to_here, Some(Suite::new("aes128-gcm@openssh.com", None)));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read(text: String) {
            let _ = handshake(&text);
            let _ = handshake(&format!("debug2: peer server KEXINIT proposal\ndebug2: {text}"));
        }
    }
}

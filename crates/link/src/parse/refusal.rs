//! Why ssh could not connect, from its standard error.

/// A reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// No name, no route, no answer, or a closed port; ssh's own message.
    Unreachable(String),
    /// The far end does not let this user in; ssh's own message.
    NotAuthenticated(String),
    /// The host's key is unknown or has changed.
    HostKey(String),
    /// Both ends have none of a kind in common.
    NoneInCommon {
        /// `cipher`, `MAC`, `key exchange method`, `host key type`
        what: String,
        /// The far end's offers.
        offers: Vec<String>,
    },
    /// ssh rejects an option or a configuration file.
    Configuration(String),
    /// Any other reason; the last messages of ssh.
    Other(String),
}

/// Messages of ssh and of the C library.
const UNREACHABLE: [&str; 10] = [
    "Could not resolve hostname",
    "Connection refused",
    "Connection timed out",
    "Operation timed out",
    // `Connection to 10.0.0.1 port 22 timed out`: after its greeting.
    " timed out",
    "No route to host",
    "Network is unreachable",
    "Host is down",
    "Connection closed by",
    "Connection reset by",
];
const CONFIGURATION: [&str; 4] =
    ["Bad configuration option", "Bad SSH2 ", "bad configuration options", "Can't open user config file"];

/// Reads standard error of an ssh that ended before its command ran.
pub fn refusal(text: &str) -> Refusal {
    let lines: Vec<&str> = text
        .lines()
        .map(|l| l.trim_end_matches('\r'))
        .filter(|l| !l.starts_with("debug") && !l.starts_with("OpenSSH_") && !l.trim().is_empty())
        .collect();
    let last_with = |word: &str| lines.iter().rev().find(|l| l.contains(word)).map(|l| (*l).to_owned());
    if let Some(line) = last_with("no matching ") {
        return none_in_common(&line);
    }
    if lines.iter().any(|line| line.starts_with("usage: ssh")) {
        return Refusal::Other("it does not understand this name".to_owned());
    }
    if let Some(line) = CONFIGURATION.iter().find_map(|w| last_with(w)) {
        return Refusal::Configuration(line);
    }
    if let Some(line) =
        last_with("Host key verification failed").or_else(|| last_with("HOST IDENTIFICATION HAS CHANGED"))
    {
        return Refusal::HostKey(line);
    }
    if let Some(line) =
        last_with("Permission denied").or_else(|| last_with("Too many authentication failures"))
    {
        return Refusal::NotAuthenticated(line);
    }
    if let Some(line) = UNREACHABLE.iter().find_map(|w| last_with(w)) {
        return Refusal::Unreachable(line);
    }
    let from = lines.len().saturating_sub(3);
    Refusal::Other(lines[from..].join("; "))
}

/// `Unable to negotiate with 127.0.0.1 port 2299: no matching cipher found. Their offer: aes128-cbc`
fn none_in_common(line: &str) -> Refusal {
    let (_, rest) = line.split_once("no matching ").unwrap_or_default();
    let (what, rest) = rest.split_once(" found").unwrap_or((rest, ""));
    let offers = rest.split_once("offer: ").map_or("", |(_, names)| names);
    Refusal::NoneInCommon {
        what: what.to_owned(),
        offers: offers.split(',').map(|n| n.trim().to_owned()).filter(|n| !n.is_empty()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_is_recognised_by_its_message() {
        let is = |text: &str| refusal(text);
        assert!(
            matches!(is("ssh: connect to host h port 22: Connection refused\r\n"), Refusal::Unreachable(l) if l.contains("refused"))
        );
        assert!(matches!(
            is("ssh: Could not resolve hostname nowhere: Name or service not known\n"),
            Refusal::Unreachable(_)
        ));
        assert!(
            matches!(is("debug1: x\nroot@h: Permission denied (publickey,password).\n"), Refusal::NotAuthenticated(l) if l.contains("publickey"))
        );
        assert!(matches!(is("@ WARNING @\nHost key verification failed.\n"), Refusal::HostKey(_)));
        assert!(matches!(is("/x line 3: Bad configuration option: foo\n"), Refusal::Configuration(_)));
        let after_greeting =
            "OpenSSH_9.2p1 Debian-2, OpenSSL 3.0.19\nConnection to 10.0.0.1 port 22 timed out\n";
        assert!(matches!(is(after_greeting), Refusal::Unreachable(_)));
        let usage = "usage: ssh [-46AaCf]\n           [-w local_tun[:remote_tun]] destination\n";
        assert_eq!(is(usage), Refusal::Other("it does not understand this name".into()));
        assert_eq!(is("a\nb\nc\nd\n"), Refusal::Other("b; c; d".into()));
        let old = "Unable to negotiate with 127.0.0.1 port 2299: no matching cipher found. Their offer: aes128-cbc,3des-cbc\n";
        assert_eq!(
            is(old),
            Refusal::NoneInCommon {
                what: "cipher".into(),
                offers: vec!["aes128-cbc".into(), "3des-cbc".into()]
            }
        );
    }
}

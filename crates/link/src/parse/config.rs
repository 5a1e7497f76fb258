//! `ssh -G HOST`: the configuration that ssh would use for a host; and `ssh -Q`, `ssh -V`.

/// The settings that a measurement needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Config {
    /// The host that ssh would connect to.
    pub hostname: String,
    /// The user.
    pub user: String,
    /// The port.
    pub port: String,
    /// Ciphers in order of preference.
    pub ciphers: Vec<String>,
    /// MACs in order of preference.
    pub macs: Vec<String>,
    /// Is `ProxyJump` or `ProxyCommand` set?
    pub has_proxy: bool,
}

/// Reads `ssh -G`.
pub fn config(text: &str) -> Config {
    let mut found = Config::default();
    for (key, value) in text.lines().filter_map(|l| l.split_once(' ')) {
        match key.to_ascii_lowercase().as_str() {
            "hostname" => found.hostname = value.to_owned(),
            "user" => found.user = value.to_owned(),
            "port" => found.port = value.to_owned(),
            "ciphers" => found.ciphers = names(value),
            "macs" => found.macs = names(value),
            "proxyjump" | "proxycommand" => found.has_proxy |= value != "none",
            _ => {}
        }
    }
    found
}

fn names(value: &str) -> Vec<String> {
    value.split(',').map(str::to_owned).filter(|n| !n.is_empty()).collect()
}

/// Reads `ssh -Q cipher` or `ssh -Q mac`: one name a line.
pub fn supported(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ssh_would_use() {
        let text = "host far\nuser root\nhostname 10.0.0.2\nport 2299\nciphers aes128-ctr,aes256-ctr\nmacs hmac-sha1\nproxyjump none\n";
        let found = config(text);
        assert_eq!(
            (found.hostname.as_str(), found.port.as_str(), found.user.as_str()),
            ("10.0.0.2", "2299", "root")
        );
        assert_eq!(found.ciphers, ["aes128-ctr", "aes256-ctr"]);
        assert!(!found.has_proxy && config("proxycommand nc %h\n").has_proxy);
        assert_eq!(supported("aes128-ctr\naes256-ctr\n").len(), 2);
    }
}

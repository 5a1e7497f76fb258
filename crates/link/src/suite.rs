//! A cipher and its packet authentication.

use std::fmt;

use serde::Serialize;

/// A cipher by its name in ssh, with a MAC if it does not authenticate by itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Suite {
    /// `aes128-gcm@openssh.com`
    pub cipher: String,
    /// `umac-128-etm@openssh.com`; none with AES-GCM and ChaCha20-Poly1305, which authenticate by themselves (PROTOCOL, 1.6
    /// in OpenSSH's sources).
    pub mac: Option<String>,
}

impl Suite {
    /// A cipher with a MAC, which is dropped if the cipher authenticates by itself.
    pub fn new(cipher: &str, mac: Option<&str>) -> Self {
        let mac = mac.filter(|_| !is_aead(cipher)).map(str::to_owned);
        Self { cipher: cipher.to_owned(), mac }
    }
}

/// Does this cipher authenticate by itself?
pub fn is_aead(cipher: &str) -> bool {
    cipher.contains("-gcm") || cipher.starts_with("chacha20-poly1305")
}

/// The name without its domain, which is that of its inventor.
pub fn short(name: &str) -> &str {
    name.split_once('@').map_or(name, |(name, _)| name)
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.mac {
            Some(mac) => write!(f, "{} + {}", short(&self.cipher), short(mac)),
            None => f.write_str(short(&self.cipher)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cipher_that_authenticates_has_no_mac() {
        let gcm = Suite::new("aes128-gcm@openssh.com", Some("hmac-sha2-256-etm@openssh.com"));
        let ctr = Suite::new("aes128-ctr", Some("hmac-sha2-256-etm@openssh.com"));
        assert_eq!((gcm.mac.as_deref(), gcm.to_string().as_str()), (None, "aes128-gcm"));
        assert_eq!(ctr.to_string(), "aes128-ctr + hmac-sha2-256-etm");
    }
}

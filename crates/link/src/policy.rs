//! The allowed ciphers and MACs. Pure.
//!
//! Sources: RFC 8758 (RC4 must not be used), CVE-2023-48795 (Terrapin: ChaCha20-Poly1305, and CBC with EtM, lose packets at the
//! start of a connection unless both ends have strict key exchange, OpenSSH 9.6), FIPS 140-3 (AES alone), ssh-audit's ratings
//! (CBC, SHA-1, encrypt-and-MAC and tags of 64 bits are weak).

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::suite::{Suite, is_aead};

/// A security floor. No cipher outside it is used, however fast it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Policy {
    /// AES-GCM; ChaCha20-Poly1305 where both ends have strict key exchange; AES-CTR with an encrypt-then-MAC of 128 bits or more.
    #[default]
    Modern,
    /// AES-GCM, and AES-CTR with HMAC-SHA-2 (encrypt-then-MAC).
    Fips,
}

/// The offers that both ends have in common.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Offers {
    /// Ciphers.
    pub ciphers: Vec<String>,
    /// MACs.
    pub macs: Vec<String>,
    /// Do both ends have strict key exchange?
    pub is_strict: bool,
}

/// A cipher or MAC that both ends have and the policy does not allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refused {
    /// Its name in ssh.
    pub name: String,
    /// The reason.
    pub why: &'static str,
}

const MODERN_MACS: [&str; 3] =
    ["umac-128-etm@openssh.com", "hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com"];
const TERRAPIN: &str = "without strict key exchange on both ends it is open to the Terrapin attack (CVE-2023-48795); OpenSSH 9.6 has it, \
                        and distributions' older ones with a security update of December 2023";

impl Policy {
    /// Why this cipher is not allowed; `None`: it is allowed.
    pub fn refuses_cipher(self, cipher: &str, is_strict: bool) -> Option<&'static str> {
        match cipher {
            c if c.starts_with("arcfour") => Some("RC4 is broken (RFC 8758)"),
            "none" => Some("it does not encrypt"),
            c if c.starts_with("3des") => Some("3DES is weak and slow"),
            c if c.ends_with("-cbc") || c.starts_with("rijndael") => Some("CBC mode is weak in ssh"),
            c if is_aes_gcm(c) || is_aes_ctr(c) => None,
            "chacha20-poly1305@openssh.com" => match self {
                Self::Fips => Some("ChaCha20 is not approved by FIPS"),
                Self::Modern => (!is_strict).then_some(TERRAPIN),
            },
            _ => Some("this policy does not name it"),
        }
    }

    /// The same for a MAC.
    pub fn refuses_mac(self, mac: &str) -> Option<&'static str> {
        match mac {
            m if m.contains("md5") => Some("MD5 is broken"),
            m if m.contains("sha1") => Some("SHA-1 is weak"),
            m if m.starts_with("umac-64") => Some("its tag has 64 bits only"),
            m if !m.ends_with("-etm@openssh.com") => Some("it is computed before encryption, not after"),
            m if !MODERN_MACS.contains(&m) => Some("this policy does not name it"),
            m if self == Self::Fips && m.starts_with("umac") => Some("UMAC is not approved by FIPS"),
            _ => None,
        }
    }

    /// All allowed offers: each cipher, and with each MAC if it needs one.
    pub fn allowed(self, offers: &Offers) -> Vec<Suite> {
        let macs: Vec<&String> = offers.macs.iter().filter(|m| self.refuses_mac(m).is_none()).collect();
        let ciphers = offers.ciphers.iter().filter(|c| self.refuses_cipher(c, offers.is_strict).is_none());
        let with_macs = |cipher: &String| -> Vec<Suite> {
            if is_aead(cipher) {
                return vec![Suite::new(cipher, None)];
            }
            macs.iter().map(|mac| Suite::new(cipher, Some(mac))).collect()
        };
        ciphers.flat_map(with_macs).collect()
    }

    /// All offers that are not allowed.
    pub fn refused(self, offers: &Offers) -> Vec<Refused> {
        let refused = |name: &String, why| Refused { name: name.clone(), why };
        let ciphers = offers
            .ciphers
            .iter()
            .filter_map(|c| self.refuses_cipher(c, offers.is_strict).map(|why| refused(c, why)));
        let macs = offers.macs.iter().filter_map(|m| self.refuses_mac(m).map(|why| refused(m, why)));
        ciphers.chain(macs).collect()
    }

    /// Is this one allowed?
    pub fn allows(self, suite: &Suite, is_strict: bool) -> bool {
        self.refuses_cipher(&suite.cipher, is_strict).is_none()
            && suite.mac.as_ref().is_none_or(|mac| self.refuses_mac(mac).is_none())
    }
}

fn is_aes_gcm(cipher: &str) -> bool {
    matches!(cipher, "aes128-gcm@openssh.com" | "aes256-gcm@openssh.com")
}

fn is_aes_ctr(cipher: &str) -> bool {
    matches!(cipher, "aes128-ctr" | "aes192-ctr" | "aes256-ctr")
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Modern => "modern",
            Self::Fips => "fips",
        })
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "modern" => Ok(Self::Modern),
            "fips" => Ok(Self::Fips),
            other => Err(format!("\"{other}\" is no policy; there are: modern, fips")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ssh -Q cipher` and `ssh -Q mac` of OpenSSH 9.2, and what older ones had.
    fn everything(is_strict: bool) -> Offers {
        let ciphers = "3des-cbc aes128-cbc aes192-cbc aes256-cbc rijndael-cbc@lysator.liu.se arcfour arcfour128 arcfour256 none \
                       aes128-ctr aes192-ctr aes256-ctr aes128-gcm@openssh.com aes256-gcm@openssh.com chacha20-poly1305@openssh.com";
        let macs = "hmac-sha1 hmac-sha1-96 hmac-sha2-256 hmac-sha2-512 hmac-md5 umac-64@openssh.com umac-128@openssh.com \
                    hmac-sha1-etm@openssh.com hmac-sha2-256-etm@openssh.com hmac-sha2-512-etm@openssh.com umac-64-etm@openssh.com \
                    umac-128-etm@openssh.com";
        let list = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        Offers { ciphers: list(ciphers), macs: list(macs), is_strict }
    }

    fn shown(suites: &[Suite]) -> Vec<String> {
        suites.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn modern_is_gcm_chacha_and_ctr_with_etm() {
        let allowed = shown(&Policy::Modern.allowed(&everything(true)));
        assert_eq!(allowed.len(), 3 * 3 + 3);
        assert_eq!(allowed[0], "aes128-ctr + hmac-sha2-256-etm");
        assert_eq!(allowed[9..], ["aes128-gcm", "aes256-gcm", "chacha20-poly1305"]);
    }

    #[test]
    fn chacha_needs_strict_key_exchange_on_both_ends() {
        let allowed = shown(&Policy::Modern.allowed(&everything(false)));
        assert!(!allowed.contains(&"chacha20-poly1305".to_owned()));
        let refused = Policy::Modern.refused(&everything(false));
        let chacha = refused.iter().find(|r| r.name.starts_with("chacha")).unwrap();
        assert!(chacha.why.contains("Terrapin"));
    }

    #[test]
    fn fips_is_aes_with_sha_2() {
        let allowed = shown(&Policy::Fips.allowed(&everything(true)));
        assert_eq!(allowed.len(), 3 * 2 + 2);
        assert!(allowed.iter().all(|s| s.starts_with("aes") && !s.contains("umac")));
    }

    #[test]
    fn what_is_broken_is_refused_by_every_policy() {
        for policy in [Policy::Modern, Policy::Fips] {
            let refused = policy.refused(&everything(true));
            for name in [
                "none",
                "arcfour",
                "arcfour256",
                "3des-cbc",
                "aes256-cbc",
                "rijndael-cbc@lysator.liu.se",
                "hmac-md5",
            ] {
                assert!(refused.iter().any(|r| r.name == name), "{policy}: {name}");
            }
            assert!(policy.refuses_cipher("something-new@example.org", true).is_some());
        }
    }
}

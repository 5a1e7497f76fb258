//! Where an engine is: text in, data out.
//!
//! ```text
//! redis://[USER@]HOST[:PORT][/DB]                          one engine
//! redis+sentinel://[USER@]HOST[:PORT],.../NAME[/DB]        the master that sentinels name
//! redis+cluster://[USER@]HOST[:PORT],...                   a cluster
//! ```
//!
//! With `rediss` the connection is encrypted (TLS). A semicolon separates hosts too. `valkey` and `valkeys` are the same. A password in it is refused: arguments are visible to
//! all users.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// An engine's process that lived so long has not failed at its start. One whose password is refused lives so long, and says at once that all asks
/// fail: without a process readers would wait.
pub const LIVED: Duration = Duration::from_secs(30);

const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26_379;

/// The most hosts of a URL.
const HOSTS: usize = 64;

/// Where an engine is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineUrl {
    /// What is there.
    pub kind: EngineKind,
    /// Encrypted connections.
    pub tls: bool,
    /// The engine's user (ACL).
    pub user: Option<String>,
    /// Hosts and ports, at least one.
    pub hosts: Vec<(String, u16)>,
}

/// What is at the hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EngineKind {
    /// One engine, with this database.
    Alone(i64),
    /// Sentinels, which know the engine of this name; its database.
    Sentinel(String, i64),
    /// Nodes of a cluster.
    Cluster,
}

/// Why a text is no URL of an engine.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UrlError {
    /// The scheme.
    #[error(
        "it begins with none of redis://, rediss:// (TLS), redis+sentinel://, redis+cluster://; valkey:// is the same as redis://"
    )]
    Scheme,
    /// A password.
    #[error(
        "it has a password, which every user of this machine could read; write it into a file that only you can read and name that by --shared-password"
    )]
    Password,
    /// A host.
    #[error(
        "\"{0}\" is no host: letters, digits, dots and dashes, or an address, IPv6 in brackets, then perhaps :PORT"
    )]
    Host(String),
    /// Too many hosts.
    #[error("it names {0} hosts; one engine has one, sentinels and clusters at most 64")]
    Hosts(usize),
    /// What follows the hosts.
    #[error(
        "\"/{0}\" follows the hosts; that is /DB for one engine, /NAME or /NAME/DB for sentinels, nothing for a cluster"
    )]
    Path(String),
    /// The user.
    #[error("\"{0}\" is no user of an engine: letters, digits, dots, dashes and underscores")]
    User(String),
}

/// What the supervisor tells the engine's process, as JSON on its standard input.
#[derive(Clone, Serialize, Deserialize)]
pub struct EngineConfig {
    /// Where the engine is.
    pub url: EngineUrl,
    /// Its password.
    pub password: Option<String>,
    /// Certificates of authorities (PEM), instead of this machine's.
    pub ca: Option<String>,
    /// This machine's certificate (PEM), for an engine that asks its clients for one; with [`EngineConfig::private_key`].
    pub cert: Option<String>,
    /// Its key (PEM).
    pub private_key: Option<String>,
}

impl std::fmt::Debug for EngineConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineConfig").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Parses a URL.
///
/// # Errors
/// What is wrong with it.
pub fn parse(text: &str) -> Result<EngineUrl, UrlError> {
    let (scheme, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
    let (base, kind) = scheme.split_once('+').unwrap_or((scheme, ""));
    let tls = match base {
        "redis" | "valkey" => false,
        "rediss" | "valkeys" => true,
        _ => return Err(UrlError::Scheme),
    };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, hosts) = match authority.rsplit_once('@') {
        Some((user, _)) if user.contains(':') => return Err(UrlError::Password),
        Some((user, hosts)) if is_word(user) => (Some(user.to_owned()), hosts),
        Some((user, _)) => return Err(UrlError::User(shown(user))),
        None => (None, authority),
    };
    let path_error = || UrlError::Path(shown(path));
    let db = |text: &str| if text.is_empty() { Some(0) } else { text.parse().ok().filter(|n| *n >= 0) };
    let (kind, port) = match kind {
        "" => (EngineKind::Alone(db(path).ok_or_else(path_error)?), PORT),
        "cluster" if path.is_empty() => (EngineKind::Cluster, PORT),
        "cluster" => return Err(path_error()),
        "sentinel" => {
            let (name, number) = path.split_once('/').unwrap_or((path, ""));
            let db = db(number).filter(|_| is_word(name)).ok_or_else(path_error)?;
            (EngineKind::Sentinel(name.to_owned(), db), SENTINEL_PORT)
        }
        _ => return Err(UrlError::Scheme),
    };
    let hosts: Vec<_> = hosts.split([',', ';']).map(|text| host(text, port)).collect::<Result<_, _>>()?;
    let most = if matches!(kind, EngineKind::Alone(_)) { 1 } else { HOSTS };
    if hosts.len() > most {
        Err(UrlError::Hosts(hosts.len()))
    } else {
        Ok(EngineUrl { kind, tls, user, hosts })
    }
}

fn host(text: &str, port: u16) -> Result<(String, u16), UrlError> {
    let error = || UrlError::Host(shown(text));
    if let Some(rest) = text.strip_prefix('[') {
        let (address, rest) = rest.split_once(']').ok_or_else(error)?;
        let address: std::net::Ipv6Addr = address.parse().map_err(|_| error())?;
        let port = match rest.strip_prefix(':') {
            Some(port) => port.parse().map_err(|_| error())?,
            None if rest.is_empty() => port,
            None => return Err(error()),
        };
        return Ok((address.to_string(), port));
    }
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => (name, port.parse().map_err(|_| error())?),
        None => (text, port),
    };
    let is_host = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    if name.is_empty() || name.len() > 253 || port == 0 || !name.chars().all(is_host) {
        return Err(error());
    }
    Ok((name.to_owned(), port))
}

fn is_word(text: &str) -> bool {
    let is_known = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !text.is_empty() && text.len() <= 128 && text.chars().all(is_known)
}

fn shown(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> EngineUrl {
        parse(text).unwrap()
    }

    #[test]
    fn every_kind_is_read() {
        let one = of("redis://cache.example.org");
        assert_eq!(
            (one.kind, one.tls, one.user, one.hosts),
            (EngineKind::Alone(0), false, None, vec![("cache.example.org".into(), 6379)])
        );
        let one = of("rediss://eke@10.0.0.1:6380/3");
        assert_eq!(
            (one.kind, one.tls, one.user.as_deref(), one.hosts),
            (EngineKind::Alone(3), true, Some("eke"), vec![("10.0.0.1".into(), 6380)])
        );
        let cluster = of("valkeys+cluster://a,b:7000;[fd00::1]:7001");
        let hosts = vec![("a".into(), 6379), ("b".into(), 7000), ("fd00::1".into(), 7001)];
        assert_eq!((cluster.kind, cluster.tls, cluster.hosts), (EngineKind::Cluster, true, hosts));
        let sentinel = of("redis+sentinel://s1,s2/farm/2");
        assert_eq!(sentinel.kind, EngineKind::Sentinel("farm".into(), 2));
        assert_eq!(sentinel.hosts, [("s1".into(), 26_379), ("s2".into(), 26_379)]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(parse("redis://eke:secret@a"), Err(UrlError::Password));
        assert_eq!(parse("redis://:secret@a"), Err(UrlError::Password));
        for text in ["", "a", "http://a", "redis+x://a", "redis:a"] {
            assert_eq!(parse(text), Err(UrlError::Scheme), "{text}");
        }
        for text in ["redis://", "redis://a b", "redis://a:0", "redis://a:x", "redis://[1", "redis://[::1]x"]
        {
            assert!(matches!(parse(text), Err(UrlError::Host(_))), "{text}");
        }
        assert_eq!(parse("redis://a,b"), Err(UrlError::Hosts(2)));
        for text in [
            "redis://a/x",
            "redis://a/-1",
            "redis+cluster://a/0",
            "redis+sentinel://a",
            "redis+sentinel://a/b/c",
        ] {
            assert!(matches!(parse(text), Err(UrlError::Path(_))), "{text}");
        }
        assert!(!parse("redis://\u{1b}@a").unwrap_err().to_string().contains('\u{1b}'));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(redis|valkeys)(\\+cluster|\\+sentinel)?://.{0,60}") {
            if let Ok(url) = parse(&text) {
                prop_assert!(!url.hosts.is_empty() && url.hosts.iter().all(|(host, port)| !host.is_empty() && *port > 0));
            }
        }
    }
}

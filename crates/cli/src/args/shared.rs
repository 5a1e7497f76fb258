//! The tier that a farm shares, as options of `eke cache mount` and `enable`.

use std::path::PathBuf;

use clap::Args;
use eke_cache_mounts::engine_url;
use eke_cache_mounts::shared::BANDWIDTH;
use eke_model::units::Bytes;

/// The options.
#[derive(Debug, Clone, Args)]
pub struct SharedTierArgs {
    /// Share blocks with other machines by Valkey or Redis: redis://HOST, rediss://USER@HOST:PORT/DB (TLS), redis+cluster://HOST,HOST or redis+sentinel://HOST,HOST/NAME
    // The alias is its name in /etc/fstab.
    #[arg(long = "shared", alias = "shared-url", value_name = "URL", value_parser = url)]
    pub url: Option<String>,
    /// The same name on all machines for what they share. Without one, the id of its file system tells, if that has one
    #[arg(long = "shared-name", value_name = "NAME", requires = "url", value_parser = name)]
    pub name: Option<String>,
    /// The file with the engine's password, which nobody else can read
    #[arg(long = "shared-password", value_name = "FILE", requires = "url")]
    pub password: Option<PathBuf>,
    /// The file with the certificates (PEM) that the engine's must be signed by (default: those of this machine)
    #[arg(long = "shared-ca", value_name = "FILE", requires = "url")]
    pub ca: Option<PathBuf>,
    /// The file with this machine's certificate (PEM), for an engine that asks its clients for one, as Valkey and Redis do with TLS by default
    #[arg(long = "shared-cert", value_name = "FILE", requires_all = ["url", "private_key"])]
    pub cert: Option<PathBuf>,
    /// The file with the key of this certificate (PEM), which nobody else can read
    #[arg(long = "shared-key", value_name = "FILE", requires_all = ["url", "cert"])]
    pub private_key: Option<PathBuf>,
    /// The most bytes sent to the engine in a second
    #[arg(long = "shared-rate", value_name = "SIZE", requires = "url", default_value_t = BANDWIDTH, value_parser = rate)]
    pub rate: Bytes,
    /// Encrypt shared blocks with the key in this file: 32 random bytes, the same on all machines, which nobody else can read
    #[arg(long = "encrypt", value_name = "KEYFILE", requires = "url")]
    pub key: Option<PathBuf>,
}

fn url(text: &str) -> Result<String, String> {
    engine_url::parse(text).map(|_| text.to_owned()).map_err(|e| e.to_string())
}

fn name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if !text.is_empty() && text.len() <= 128 && text.chars().all(is_plain) {
        return Ok(text.to_owned());
    }
    Err("a name has letters, digits, dots, dashes and underscores, at most 128".into())
}

fn rate(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse().map_err(|e| format!("{e}"))?;
    if bytes < Bytes::mib(1) {
        return Err(format!("{bytes} a second is too little for blocks: give at least {}", Bytes::mib(1)));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct OnlyShared {
        #[command(flatten)]
        _tier: SharedTierArgs,
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        assert!(url("redis://a").is_ok() && url("http://a").is_err() && url("redis://u:p@a").is_err());
        assert!(name("srv-www.1").is_ok() && name("").is_err() && name("a b").is_err());
        let parsed = |line: &str| OnlyShared::try_parse_from(line.split(' ')).is_ok();
        assert!(parsed("x --shared rediss://a --shared-cert /c --shared-key /k"));
        assert!(!parsed("x --shared rediss://a --shared-cert /c"));
        assert!(!parsed("x --shared rediss://a --shared-key /k"));
        assert!(rate("1M").is_ok() && rate("1K").is_err() && rate("much").is_err());
    }
}

//! What the engine wants of this machine: passwords, keys and certificates, from files. Secrets are read from those alone that only their user can read.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use eke_cache_mounts::engine_url::{EngineConfig, EngineUrl};
use eke_cache_mounts::shared::SharedSettings;
use eke_cache_shared::seal::KEY;
use rustix::fs::{FileType, Mode, OFlags, fstat, open};

use super::error::SharedError;
use crate::log::log_line;

/// The most bytes of a secret, and of certificates.
const SECRET: u64 = 16384;
const CERTIFICATES: u64 = 1 << 20;

/// What the engine's process is told, with the files as they are now.
///
/// # Errors
/// The first file that cannot be read or used.
pub fn config(settings: &SharedSettings, url: EngineUrl) -> Result<EngineConfig, SharedError> {
    Ok(EngineConfig {
        url,
        password: settings.password.as_deref().map(password).transpose()?,
        ca: settings.ca.as_deref().map(certificates).transpose()?,
        cert: settings.cert.as_deref().map(certificates).transpose()?,
        private_key: settings.private_key.as_deref().map(private_key).transpose()?,
    })
}

/// The same, or the old one if a file cannot be used now.
pub fn config_now(settings: &SharedSettings, old: &EngineConfig) -> EngineConfig {
    config(settings, old.url.clone()).unwrap_or_else(|e| {
        log_line(&format!("the files of the shared tier are not read again: {e}"));
        old.clone()
    })
}

fn password(path: &Path) -> Result<String, SharedError> {
    let bytes = secret(path)?;
    let text = String::from_utf8(bytes).ok().map(|text| text.trim_end_matches(['\n', '\r']).to_owned());
    let line = text.filter(|text| !text.is_empty() && !text.contains(char::is_control));
    line.ok_or_else(|| SharedError::Password { path: path.to_owned() })
}

/// The key of sealed blocks.
///
/// # Errors
/// The file cannot be read, is no secret or has another length.
pub fn key(path: &Path) -> Result<[u8; KEY], SharedError> {
    let bytes = secret(path)?;
    let len = bytes.len();
    bytes.try_into().map_err(|_| SharedError::Key { path: path.to_owned(), len })
}

fn private_key(path: &Path) -> Result<String, SharedError> {
    let bytes = secret(path)?;
    String::from_utf8(bytes).map_err(|_| SharedError::Strange { path: path.to_owned(), most: SECRET })
}

fn certificates(path: &Path) -> Result<String, SharedError> {
    let bytes = read(path, CERTIFICATES, |_| Ok(()))?;
    String::from_utf8(bytes).map_err(|_| SharedError::Strange { path: path.to_owned(), most: CERTIFICATES })
}

/// Reads a file that nobody but its user can read.
fn secret(path: &Path) -> Result<Vec<u8>, SharedError> {
    read(path, SECRET, |stat| {
        let (path, uid) = (path.to_owned(), rustix::process::geteuid().as_raw());
        if stat.st_uid != uid {
            return Err(SharedError::NotOwn { path, owner: stat.st_uid, uid });
        }
        if stat.st_mode & 0o077 != 0 { Err(SharedError::Readable { path }) } else { Ok(()) }
    })
}

fn read(
    path: &Path,
    most: u64,
    check: impl FnOnce(&rustix::fs::Stat) -> Result<(), SharedError>,
) -> Result<Vec<u8>, SharedError> {
    let failed = |source: std::io::Error| SharedError::File { path: path.to_owned(), source };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(open(path, flags, Mode::empty()).map_err(|e| failed(e.into()))?);
    let stat = fstat(&file).map_err(|e| failed(e.into()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_size as u64 > most {
        return Err(SharedError::Strange { path: path.to_owned(), most });
    }
    check(&stat)?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{FileExt, PermissionsExt};

    use super::*;

    fn file(content: &[u8], mode: u32) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file.as_file(), content).unwrap();
        file.as_file().set_permissions(Permissions::from_mode(mode)).unwrap();
        file
    }

    #[test]
    fn a_secret_that_others_can_read_is_refused() {
        assert_eq!(password(file(b"word\n", 0o600).path()).unwrap(), "word");
        for mode in [0o640, 0o604, 0o620] {
            let refused = password(file(b"word", mode).path());
            assert!(matches!(refused, Err(SharedError::Readable { .. })), "{mode:o}");
        }
        assert!(matches!(password(file(b"", 0o600).path()), Err(SharedError::Password { .. })));
        assert!(matches!(password(file(b"a\nb", 0o600).path()), Err(SharedError::Password { .. })));
        assert!(matches!(password(Path::new("/dev/null")), Err(SharedError::Strange { .. })));
        assert!(matches!(password(file(&[b'a'; 20_000], 0o600).path()), Err(SharedError::Strange { .. })));
    }

    #[test]
    fn a_key_has_32_bytes() {
        assert_eq!(key(file(&[7; 32], 0o600).path()).unwrap(), [7; 32]);
        assert!(matches!(key(file(&[7; 33], 0o600).path()), Err(SharedError::Key { len: 33, .. })));
        assert!(matches!(key(file(&[7; 32], 0o644).path()), Err(SharedError::Readable { .. })));
    }

    #[test]
    fn the_key_of_a_certificate_is_a_secret() {
        assert_eq!(private_key(file(b"-----BEGIN\n", 0o600).path()).unwrap(), "-----BEGIN\n");
        assert!(matches!(private_key(file(b"k", 0o640).path()), Err(SharedError::Readable { .. })));
        assert_eq!(certificates(file(b"c", 0o644).path()).unwrap(), "c");
    }

    /// A certificate and its key change together: one that is not there yet leaves both as they were.
    #[test]
    fn files_that_were_exchanged_are_read_again_all_or_none() {
        let (password, cert, key) = (file(b"one\n", 0o600), file(b"c", 0o644), file(b"k", 0o600));
        let settings = SharedSettings {
            url: "redis://a".into(),
            name: None,
            password: Some(password.path().into()),
            ca: None,
            cert: Some(cert.path().into()),
            private_key: Some(key.path().into()),
            key: None,
            bandwidth: eke_cache_mounts::shared::BANDWIDTH,
        };
        let url = || eke_cache_mounts::engine_url::parse(&settings.url).unwrap();
        let old = config(&settings, url()).unwrap();
        assert_eq!(old.password.as_deref(), Some("one"));
        password.as_file().write_all_at(b"two\n", 0).unwrap();
        let now = || config_now(&settings, &old);
        assert_eq!(now().password.as_deref(), Some("two"));
        key.as_file().set_permissions(Permissions::from_mode(0o644)).unwrap();
        assert_eq!(now().password.as_deref(), Some("one"));
    }
}

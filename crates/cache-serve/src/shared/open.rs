//! The settings of a shared tier, checked before the mount, and its secrets, read from files that only their user can read.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use eke_cache_mounts::engine_url::{self, EngineConfig};
use eke_cache_mounts::shared::SharedSettings;
use eke_cache_shared::decide::SETTLED_NS;
use eke_cache_shared::seal::{KEY, Seal};
use eke_cache_shared::{Origin, SharedOptions};
use eke_linux::magic;
use rustix::fs::{FileType, Mode, OFlags, fstat, fstatfs, fstatvfs, open};

use super::error::SharedError;
use super::process::{EngineProcess, Sockets};
use crate::mount::Checked;

/// The most bytes of a secret, and of certificates.
const SECRET: u64 = 16384;
const CERTIFICATES: u64 = 1 << 20;

/// File systems whose inode numbers are the same on all machines, and whether their ids are.
const SHARED: [(u32, bool); 8] = [
    (magic::EXT, true),
    (magic::BTRFS, true),
    (magic::CEPH, true),
    (magic::OCFS2, true),
    (magic::GFS2, true),
    // The id is the device's number.
    (magic::XFS, false),
    (magic::F2FS, false),
    // There is none.
    (magic::NFS, false),
];

/// A shared tier of one mount, with the engine's process.
#[derive(Debug)]
pub struct SharedPlace {
    origin: Origin,
    key: Option<[u8; KEY]>,
    bandwidth: u64,
    /// For tests.
    pub patience: Option<Duration>,
    /// The process that has the network.
    pub process: EngineProcess,
}

impl SharedPlace {
    /// Checks the settings, reads the files, and starts the engine's process.
    ///
    /// # Errors
    /// Why there can be no such tier, and what to do.
    pub fn open(settings: &SharedSettings, dir: &Path, checked: &Checked) -> Result<Self, SharedError> {
        let url = engine_url::parse(&settings.url)?;
        let origin = origin(settings.name.as_deref(), dir, &checked.dir)?;
        let password = settings.password.as_deref().map(password).transpose()?;
        let ca = settings.ca.as_deref().map(certificates).transpose()?;
        let key = settings.key.as_deref().map(key).transpose()?;
        let cert = settings.cert.as_deref().map(certificates).transpose()?;
        let private_key = settings.private_key.as_deref().map(private_key).transpose()?;
        let process = EngineProcess::start(EngineConfig { url, password, ca, cert, private_key })?;
        Ok(Self { origin, key, bandwidth: settings.bandwidth.0, patience: None, process })
    }

    /// For a worker: what it needs, and its ends of the sockets.
    pub fn into_worker(self, block_size: usize) -> (SharedOptions, Sockets) {
        let Self { origin, key, bandwidth, patience, process } = self;
        let seal = key.as_ref().map(Seal::new);
        // Nodes of a test are on one machine.
        let settled_ns = if patience.is_some() { 0 } else { SETTLED_NS };
        (SharedOptions { origin, block_size, seal, bandwidth, settled_ns, patience }, process.into_worker())
    }
}

fn origin(name: Option<&str>, path: &Path, dir: &OwnedFd) -> Result<Origin, SharedError> {
    let kind = fstatfs(dir).map_err(|e| SharedError::Kernel(e.into()))?.f_type as u32;
    let Some((_, has_id)) = SHARED.iter().find(|(known, _)| *known == kind) else {
        return Err(SharedError::Numbers { dir: path.to_owned(), kind });
    };
    if let Some(name) = name {
        return Ok(Origin::named(name));
    }
    let id = fstatvfs(dir).map_err(|e| SharedError::Kernel(e.into()))?.f_fsid;
    if *has_id && id != 0 {
        Ok(Origin::file_system(id))
    } else {
        Err(SharedError::NoName { dir: path.to_owned() })
    }
}

fn password(path: &Path) -> Result<String, SharedError> {
    let bytes = secret(path)?;
    let text = String::from_utf8(bytes).ok().map(|text| text.trim_end_matches(['\n', '\r']).to_owned());
    let line = text.filter(|text| !text.is_empty() && !text.contains(char::is_control));
    line.ok_or_else(|| SharedError::Password { path: path.to_owned() })
}

fn key(path: &Path) -> Result<[u8; KEY], SharedError> {
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
    use std::os::unix::fs::PermissionsExt;

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

    #[test]
    fn numbers_of_each_machine_are_refused() {
        let proc = OwnedFd::from(File::open("/proc").unwrap());
        let refused = origin(Some("web"), Path::new("/proc"), &proc);
        assert!(matches!(refused, Err(SharedError::Numbers { .. })));
    }
}

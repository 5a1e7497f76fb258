//! The settings of a shared tier, checked before the mount.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use eke_cache_mounts::engine_url::{self, EngineKind};
use eke_cache_mounts::shared::SharedSettings;
use eke_cache_shared::decide::SETTLED_NS;
use eke_cache_shared::seal::{KEY, Seal};
use eke_cache_shared::{Origin, SharedOptions};
use eke_linux::magic;
use rustix::fs::{fstatfs, fstatvfs};

use super::error::SharedError;
use super::process::{EngineProcess, Sockets};
use super::secrets;
use crate::mount::Checked;

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
    is_cluster: bool,
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
        let is_cluster = url.kind == EngineKind::Cluster;
        let origin = origin(settings.name.as_deref(), dir, &checked.dir)?;
        let key = settings.key.as_deref().map(secrets::key).transpose()?;
        let process = EngineProcess::start(settings.clone(), secrets::config(settings, url)?)?;
        Ok(Self { origin, is_cluster, key, bandwidth: settings.bandwidth.0, patience: None, process })
    }

    /// For a worker: what it needs, and its ends of the sockets.
    pub fn into_worker(self, block_size: usize) -> (SharedOptions, Sockets) {
        let Self { origin, is_cluster, key, bandwidth, patience, process } = self;
        let seal = key.as_ref().map(Seal::new);
        // Nodes of a test are on one machine.
        let settled_ns = if patience.is_some() { 0 } else { SETTLED_NS };
        let options = SharedOptions { origin, block_size, is_cluster, seal, bandwidth, settled_ns, patience };
        (options, process.into_worker())
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

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn numbers_of_each_machine_are_refused() {
        let proc = OwnedFd::from(File::open("/proc").unwrap());
        let refused = origin(Some("web"), Path::new("/proc"), &proc);
        assert!(matches!(refused, Err(SharedError::Numbers { .. })));
    }
}

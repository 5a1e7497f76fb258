//! A mount that nobody serves any more: supervisor, worker and guard were killed together, as systemd does when a unit's main process dies.

use std::path::Path;
use std::time::Duration;

use eke_cache_mounts::{Mount, SocketDirs, remove_dead, socket, unmount};
use eke_present::exit::{Failure, Outcome, Status};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use rustix::io::Errno;

use super::place;
use crate::show::cache::shown;

/// Longer than another mount takes.
const TURN_WITHIN: Duration = Duration::from_secs(15);

/// Removes the mount at this path if it is of this user and dead: otherwise a unit that restarts would be refused for good. Likewise all that
/// died while they stood aside, of whatever directory: nobody else would find them.
pub fn remove(path: &Path) -> Outcome<()> {
    let dirs = SocketDirs::host();
    let all = || -> Outcome<Vec<Mount>> {
        let mounted = place::all()?;
        let at = place::at(&mounted, path).map(|mount| mount.id);
        let is_meant = |mount: &Mount| mount.aside.is_some() || Some(mount.id) == at;
        let is_dead = |mount: &Mount| mount.uid == dirs.own() && is_dead(&dirs, mount);
        Ok(mounted.into_iter().filter(|mount| is_meant(mount) && is_dead(mount)).collect())
    };
    if all()?.is_empty() {
        return Ok(());
    }
    // The kernel gives numbers of a mount to the next one. So none is made between the question and the unmount.
    let _turn = dirs.turn(TURN_WITHIN);
    all()?.iter().try_for_each(|mount| remove_one(&dirs, mount))
}

fn remove_one(dirs: &SocketDirs, mount: &Mount) -> Outcome<()> {
    // Lazily: whoever uses it gets errors only.
    unmount(mount, true).map_err(|e| {
        let what = format!("cannot remove the dead mount at {}: {e}", shown(mount.point()));
        Failure::new(Status::Failed, what)
    })?;
    remove_dead(dirs, mount.device, mount.uid);
    eke_present::warn!("eke: the mount at {} was dead and is removed", shown(mount.point()));
    Ok(())
}

/// Nobody listens, and the kernel has no server for it. It asks the kernel second, since a stopped server answers never.
fn is_dead(dirs: &SocketDirs, mount: &Mount) -> bool {
    // Attributes that the kernel keeps would hide it.
    let flags = AtFlags::STATX_FORCE_SYNC | AtFlags::SYMLINK_NOFOLLOW;
    let stat = || statx(CWD, mount.point(), flags, StatxFlags::BASIC_STATS);
    matches!(socket::connect(dirs, mount.device, mount.uid), Ok(None)) && stat().err() == Some(Errno::NOTCONN)
}

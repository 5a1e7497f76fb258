//! Errors that are known before the mount, with better messages and exit statuses than `eke-cache` has; it checks the rest.

use std::io;
use std::path::{Path, PathBuf};

use eke_cache_mounts::settings::{MOST_PERCENT, Memory, Settings};
use eke_cache_mounts::{Mount, mounts};
use eke_linux::Root;
use eke_linux::parse::meminfo;
use eke_model::units::Bytes;
use eke_present::exit::{Failure, Outcome, Status};
use rustix::fs::{Access, access};

use super::fuse::Fuse;

/// A directory that is served, as an absolute path without links.
pub fn directory(path: &Path) -> Outcome<PathBuf> {
    directory_to("serve", path)
}

/// A directory for evicted blocks, as an absolute path without links.
pub fn spill_directory(path: &Path) -> Outcome<PathBuf> {
    directory_to("keep evicted blocks in", path)
}

/// A file of the shared tier, as an absolute path. The supervisor checks its owner and mode.
pub fn shared_file(path: &Path) -> Outcome<PathBuf> {
    let real = std::fs::canonicalize(path);
    real.map_err(|e| Failure::new(Status::Usage, format!("cannot read {}: {e}", path.display())))
}

fn directory_to(verb: &str, path: &Path) -> Outcome<PathBuf> {
    let wrong = |why: String| Failure::new(Status::Usage, format!("cannot {verb} {}: {why}", path.display()));
    let real = std::fs::canonicalize(path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => wrong("there is no such directory".into()),
        _ => unreachable(path, verb, &e),
    })?;
    let meta = std::fs::metadata(&real).map_err(|e| wrong(e.to_string()))?;
    if meta.is_dir() { Ok(real) } else { Err(wrong("it is not a directory".into())) }
}

/// Why a path cannot be reached, to do this with it.
pub fn unreachable(path: &Path, verb: &str, error: &io::Error) -> Failure {
    let shown = path.display();
    let wrong = |why: String| Failure::new(Status::Usage, format!("cannot {verb} {shown}: {why}"));
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            let why = format!("cannot {verb} {shown}: {shown} is not accessible to you");
            Failure::new(Status::NotPermitted, why).hint("try again with sudo")
        }
        io::ErrorKind::NotConnected => wrong("the process of the cache mounted there is dead".into())
            .hint(format!("eke cache umount {shown}")),
        io::ErrorKind::NotFound => wrong("there is no such file or directory".into()),
        _ => wrong(error.to_string()),
    }
}

/// Checks that nothing prevents the mount.
///
/// # Errors
/// What prevents it, and what to do.
pub fn possible(root: &Root, settings: &Settings, mounted: &[Mount]) -> Outcome<()> {
    if mounts::at(mounted, &settings.place).is_some() {
        return Err(taken(&settings.place));
    }
    fits(root, settings.memory)?;
    let fuse = Fuse::host(root);
    if let Some(why) = fuse.too_old() {
        return Err(Failure::new(Status::Failed, format!("cannot mount: {why}")));
    }
    if let Some(why) = &fuse.no_device {
        let status = if fuse.is_closed() { Status::NotPermitted } else { Status::Failed };
        return Err(Failure::new(status, format!("cannot mount: {why}"))
            .hint("`eke doctor` shows this machine's support for FUSE"));
    }
    if rustix::process::geteuid().is_root() { Ok(()) } else { without_root(settings) }
}

/// The error if a cache is mounted there already.
pub fn taken(place: &Path) -> Failure {
    let place = place.display();
    let there = format!("a compressed page cache is mounted at {place} already");
    Failure::new(Status::Failed, there)
        .hint(format!("`eke cache status {place}` shows it, `eke cache umount {place}` ends it"))
}

fn fits(root: &Root, memory: Memory) -> Outcome<()> {
    let (Memory::Bytes(asked), Ok(text)) = (memory, root.read("proc/meminfo")) else { return Ok(()) };
    let ram = meminfo::parse(&text).total;
    let most = Bytes(ram.0 / 100 * u64::from(MOST_PERCENT));
    if ram.0 == 0 || asked <= most {
        return Ok(());
    }
    let much = format!("--memory {asked} is more than {MOST_PERCENT} % of this machine's {ram}");
    Err(Failure::new(Status::Usage, much).hint(format!("give at most {most}, or a share such as 25%")))
}

/// fusermount3 reports these errors with less detail.
fn without_root(settings: &Settings) -> Outcome<()> {
    if access(&settings.dir, Access::READ_OK | Access::EXEC_OK).is_err() {
        return Err(not_permitted(&settings.dir, "is not readable for you"));
    }
    if access(&settings.place, Access::WRITE_OK).is_err() {
        let why = "is not writable for you: without root you can mount only over your own directories";
        return Err(not_permitted(&settings.place, why));
    }
    Ok(())
}

fn not_permitted(path: &Path, why: &str) -> Failure {
    Failure::new(Status::NotPermitted, format!("cannot serve {0}: {0} {why}", path.display()))
        .hint("try again with sudo")
}

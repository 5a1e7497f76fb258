//! `eke prefetch export` and `import`: what one machine learned, for another that has the same packages.
//!
//! # Layout
//! - [`form`]: the file's text (pure); it comes from elsewhere, so it is bounded
//! - [`signature`]: signed and checked by `ssh-keygen -Y`
//! - [`export`], [`import`]: the verbs
//!
//! Only paths of packages ([`eke_prefetch_model::system`]) leave a machine, or come into one.

pub mod export;
pub mod form;
pub mod import;
mod signature;

use std::path::Path;

use eke_linux::Root;
use eke_prefetch_model::{Kind, Program, Stamp};
use rustix::fs::{FileType, Stat};

/// The file at `path` if it is of the system: root's, and writable by nobody else. A link is not followed: learned paths have none.
#[allow(clippy::unnecessary_cast, reason = "the fields' types differ between architectures")]
fn of_system(root: &Root, path: &Path) -> Option<(Kind, Stamp)> {
    let stat: Stat = rustix::fs::lstat(root.path(path)).ok()?;
    let others_write = stat.st_mode & 0o022 != 0;
    if stat.st_uid != 0 || others_write {
        return None;
    }
    let (dev, ino) = (stat.st_dev as u64, stat.st_ino as u64);
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            let mtime_ns = (stat.st_mtime as i64)
                .saturating_mul(1_000_000_000)
                .saturating_add(stat.st_mtime_nsec as i64);
            Some((Kind::File, Stamp { dev, ino, size: stat.st_size as u64, mtime_ns }))
        }
        FileType::Directory => Some((Kind::Directory, Stamp { dev, ino, ..Stamp::default() })),
        _ => None,
    }
}

/// Whether the executable and the script are files of the system. A script's name is an argument, and without its file it may be any text.
fn is_program_here(root: &Root, program: &Program) -> bool {
    let is_file = |path: &Path| of_system(root, path).is_some_and(|(kind, _)| kind == Kind::File);
    is_file(&program.exe) && program.script.as_deref().is_none_or(is_file)
}

//! A file that has replaced a learned one at its path, as programs do that write their files anew and rename them (rename(2)).
//!
//! It is read only if nobody but root and the user whom it is read for can have put it there. Everybody else could have any file read that root and this
//! user own. So each directory on the way is theirs, and only its owner may write to it: group and others, or the mask of an access list, have no write bit.
//! A file of root lies in directories of root only: a user could link it elsewhere.

use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{Mode, OFlags, Stat, fstat, openat};

use eke_prefetch_model::file_set::may_read_for;

const PATH_ONLY: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Group and others.
const WRITE_BITS: u32 = 0o022;

/// The file at this path, looked up directory by directory, so that what is checked is what is opened. `None` if somebody else may have put it there, or if
/// it cannot be looked up.
pub(crate) fn by_owner(root: &OwnedFd, path: &Path, user: u32) -> Option<(OwnedFd, Stat)> {
    let mut dir = openat(root, ".", PATH_ONLY | OFlags::DIRECTORY, Mode::empty()).ok()?;
    let mut dirs = vec![access(&fstat(&dir).ok()?)];
    for part in path.parent()?.components() {
        match part {
            Component::RootDir => continue,
            Component::Normal(name) => {
                dir = openat(&dir, name.as_bytes(), PATH_ONLY | OFlags::DIRECTORY, Mode::empty()).ok()?;
            }
            _ => return None,
        }
        dirs.push(access(&fstat(&dir).ok()?));
    }
    let file = openat(&dir, path.file_name()?.as_bytes(), PATH_ONLY, Mode::empty()).ok()?;
    let stat = fstat(&file).ok()?;
    is_placed_by(stat.st_uid, user, &dirs).then_some((file, stat))
}

/// Owner and mode of a directory.
#[allow(clippy::useless_conversion, reason = "the field's type differs between architectures")]
fn access(stat: &Stat) -> (u32, u32) {
    (stat.st_uid, stat.st_mode.into())
}

/// Whether only root, or root and `user`, can have put a file of `owner` into the last of these directories, each in the one before.
fn is_placed_by(owner: u32, user: u32, dirs: &[(u32, u32)]) -> bool {
    let is_theirs = |(of, mode): &(u32, u32)| (*of == 0 || *of == owner) && mode & WRITE_BITS == 0;
    may_read_for(user, owner) && dirs.iter().all(is_theirs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_and_the_user_may_have_put_it_there() {
        let (root, ours, theirs) = (0, 1000, 1001);
        let home = |mode| vec![(root, 0o755), (root, 0o755), (ours, mode)];
        let table = [
            (ours, home(0o700), true),
            (ours, home(0o755), true),
            (ours, home(0o775), false),
            (ours, home(0o757), false),
            (ours, vec![(root, 0o755), (root, 0o1777)], false),
            (ours, vec![(root, 0o755), (root, 0o1777), (ours, 0o700)], false),
            (ours, vec![(root, 0o755), (theirs, 0o755)], false),
            (ours, vec![(root, 0o755), (theirs, 0o755), (ours, 0o700)], false),
            (theirs, home(0o755), false),
            (theirs, vec![(root, 0o755), (theirs, 0o755)], false),
            (root, vec![(root, 0o755), (root, 0o755)], true),
            (root, vec![(root, 0o755), (root, 0o775)], false),
            (root, home(0o755), false),
        ];
        for (owner, dirs, expected) in table {
            assert_eq!(is_placed_by(owner, ours, &dirs), expected, "{owner}: {dirs:?}");
        }
        assert!(!is_placed_by(ours, root, &home(0o755)), "not for root");
    }
}

//! The directory that keeps images. It has copies of a user's documents, and programs that root starts, so only its owner may use it.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

/// Only the owner has access.
const MODE: u32 = 0o700;

/// Makes the directory and its parents, or restricts an existing one to this user.
///
/// # Errors
/// It cannot be made, or another user owns it: then nothing in it can be trusted.
pub fn make(dir: &Path) -> io::Result<()> {
    if let Some(above) = dir.parent() {
        std::fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(MODE).create(dir) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    let here = dir.symlink_metadata()?;
    if !here.is_dir() || here.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other(
            "it is a link or another user's, so nothing in it can be trusted; remove it, or set XDG_CACHE_HOME to a directory of your own",
        ));
    }
    std::fs::set_permissions(dir, Permissions::from_mode(MODE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_its_users_alone_and_no_link() {
        let above = tempfile::tempdir().unwrap();
        let mode = |dir: &Path| dir.metadata().unwrap().permissions().mode() & 0o777;
        let dir = above.path().join("a/b");
        make(&dir).unwrap();
        assert_eq!(mode(&dir), MODE);
        std::fs::set_permissions(&dir, Permissions::from_mode(0o755)).unwrap();
        make(&dir).unwrap();
        assert_eq!(mode(&dir), MODE);
        std::os::unix::fs::symlink(&dir, above.path().join("link")).unwrap();
        assert!(make(&above.path().join("link")).unwrap_err().to_string().contains("XDG_CACHE_HOME"));
    }
}

//! Checks whether root may run a path at every boot: only if nobody but root can replace it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use eke_linux::root::Root;

/// Mode bits: write permission, and the sticky bit, with which only a file's owner may rename or remove it.
const GROUP: u32 = 0o020;
const OTHERS: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// Why another user can change the file or a directory above it; `None` if nobody can. Follows symbolic links and
/// checks their targets.
pub(super) fn objection(root: &Root, relative: &str) -> Option<String> {
    let top = root.path("");
    let path = match fs::canonicalize(root.path(relative)) {
        Ok(path) => path,
        Err(e) => return Some(format!("/{} cannot be inspected: {e}", relative.trim_start_matches('/'))),
    };
    let top = fs::canonicalize(&top).unwrap_or(top);
    // An image belongs to the user who extracted it; the running machine's root directory is root's.
    let owner = fs::metadata(&top).map_or((0, 0), |meta| (meta.uid(), meta.gid()));
    let way: Vec<PathBuf> =
        path.ancestors().take_while(|p| p.starts_with(&top)).map(Path::to_owned).collect();
    way.iter().find_map(|part| writable(part, owner).map(|who| sentence(&top, part, &who)))
}

fn sentence(top: &Path, part: &Path, who: &str) -> String {
    let shown = Path::new("/").join(part.strip_prefix(top).unwrap_or(part));
    format!("{} can be changed by {who}", shown.display())
}

fn writable(path: &Path, (owner, group): (u32, u32)) -> Option<String> {
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        Err(e) => return Some(format!("an unknown user ({e})")),
    };
    let mode = meta.mode();
    let kept_apart = meta.is_dir() && mode & STICKY != 0;
    if meta.uid() != 0 && meta.uid() != owner {
        Some(format!("its owner, user {}", meta.uid()))
    } else if mode & OTHERS != 0 && !kept_apart {
        Some("everybody".to_owned())
    } else if mode & GROUP != 0 && ![0, group].contains(&meta.gid()) && !kept_apart {
        Some(format!("group {}", meta.gid()))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use eke_testkit::tree::put;

    use super::*;

    fn tree() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "usr/bin/eke", "");
        for path in ["", "usr", "usr/bin", "usr/bin/eke"] {
            mode(&dir, path, 0o755);
        }
        let root = Root::at(dir.path());
        (dir, root)
    }

    fn mode(dir: &tempfile::TempDir, path: &str, mode: u32) {
        fs::set_permissions(dir.path().join(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_program_that_others_can_replace_is_not_run_at_boot() {
        for part in ["usr/bin/eke", "usr/bin", "usr"] {
            let (dir, root) = tree();
            assert_eq!(objection(&root, "usr/bin/eke"), None);
            mode(&dir, part, 0o757);
            let why = objection(&root, "usr/bin/eke").unwrap();
            assert_eq!(why, format!("/{part} can be changed by everybody"));
        }
        let (dir, root) = tree();
        mode(&dir, "usr", 0o1777);
        assert_eq!(objection(&root, "usr/bin/eke"), None, "like /tmp: others cannot replace what is in it");
        mode(&dir, "usr/bin/eke", 0o1757);
        assert!(objection(&root, "usr/bin/eke").is_some(), "a file has no such protection");
    }

    #[test]
    fn a_users_file_or_group_is_not_run_at_boot() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        for part in ["usr/bin/eke", "usr/bin", "usr"] {
            let (dir, root) = tree();
            chown(dir.path().join(part), Some(12_345), None).unwrap();
            let why = objection(&root, "usr/bin/eke").unwrap();
            assert_eq!(why, format!("/{part} can be changed by its owner, user 12345"));
            chown(dir.path().join(part), Some(0), Some(12_345)).unwrap();
            assert_eq!(objection(&root, "usr/bin/eke"), None, "a group that may not write");
            mode(&dir, part, 0o775);
            let why = objection(&root, "usr/bin/eke").unwrap();
            assert_eq!(why, format!("/{part} can be changed by group 12345"));
        }
    }

    #[test]
    fn a_link_is_judged_by_its_target() {
        let (dir, root) = tree();
        put(dir.path(), "open/eke", "");
        mode(&dir, "open", 0o777);
        symlink(dir.path().join("open"), dir.path().join("usr/local")).unwrap();
        let why = objection(&root, "usr/local/eke").unwrap();
        assert!(why.starts_with("/open"), "{why}");
        assert!(objection(&root, "usr/bin/none").unwrap().contains("cannot be inspected"));
    }
}

//! Where a path really is. A symbolic link inside a root means a place inside that root, as after chroot(2):
//! `/mnt/boot -> /boot` must not lead to the running machine's `/boot`.

use std::fs;
use std::io;

use eke_linux::error::{Error, Result};
use eke_linux::root::Root;

/// As many links as Linux follows (`MAXSYMLINKS`).
const MOST_LINKS: usize = 40;

/// `path` without links and dots, relative to the root; a link at its very end is followed if `follow_last`.
///
/// # Errors
/// Links in a circle, a link that is not UTF-8, or the root itself.
pub fn resolve(root: &Root, path: &str, follow_last: bool) -> Result<String> {
    let mut ahead: Vec<String> = names(path).rev().collect();
    let mut behind: Vec<String> = Vec::new();
    let mut links = 0;
    while let Some(name) = ahead.pop() {
        if name == ".." {
            behind.pop();
            continue;
        }
        behind.push(name);
        if ahead.is_empty() && !follow_last {
            break;
        }
        let Some(target) = link_target(root, &behind.join("/"))? else { continue };
        links += 1;
        if links > MOST_LINKS {
            return Err(refused(root, path, "its symbolic links go in a circle"));
        }
        behind.pop();
        if target.starts_with('/') {
            behind.clear();
        }
        ahead.extend(names(&target).rev());
    }
    if behind.is_empty() {
        Err(refused(root, path, "it is the root directory"))
    } else {
        Ok(behind.join("/"))
    }
}

/// The directories above `path` that are not there, outermost first.
pub fn missing_dirs(root: &Root, path: &str) -> Vec<String> {
    let names: Vec<String> = names(path).collect();
    let above = (1..names.len()).map(|n| names[..n].join("/"));
    above.filter(|dir| fs::symlink_metadata(root.path(dir)).is_err()).collect()
}

fn names(path: &str) -> impl DoubleEndedIterator<Item = String> {
    path.split('/').filter(|name| !matches!(*name, "" | ".")).map(str::to_owned)
}

fn link_target(root: &Root, path: &str) -> Result<Option<String>> {
    let full = root.path(path);
    match fs::read_link(&full) {
        Ok(target) => match target.into_os_string().into_string() {
            Ok(target) => Ok(Some(target)),
            Err(_) => Err(refused(root, path, "it is a symbolic link to a name that is not UTF-8")),
        },
        // EINVAL: there is something, and it is no link.
        Err(e) if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::NotFound) => Ok(None),
        Err(e) => Err(Error::io("read link", &full, e)),
    }
}

fn refused(root: &Root, path: &str, why: &str) -> Error {
    Error::Refused(format!("{} cannot be changed: {why}", root.path(path).display()))
}

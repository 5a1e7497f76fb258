//! Resolves symbolic links inside a root, as after chroot(2): the link `/mnt/boot -> /boot` must not lead to the
//! running machine's `/boot`.

use std::io;

use eke_linux::error::{Error, Result};
use eke_linux::root::Root;

/// The kernel's limit of links (`MAXSYMLINKS`).
const MOST_LINKS: usize = 40;

/// Resolves links and dots in `path`; the result is relative to the root. Follows a link at the end only if
/// `follow_last`.
///
/// # Errors
/// A cycle of links, a link that is not UTF-8, or the root itself.
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
            return Err(refused(root, path, "its symbolic links form a cycle"));
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

/// The missing directories above `path`, outermost first.
pub fn missing_dirs(root: &Root, path: &str) -> Vec<String> {
    let names: Vec<String> = names(path).collect();
    let above = (1..names.len()).map(|n| names[..n].join("/"));
    above.filter(|dir| root.link_metadata_at(&root.path(dir)).is_err()).collect()
}

fn names(path: &str) -> impl DoubleEndedIterator<Item = String> {
    path.split('/').filter(|name| !matches!(*name, "" | ".")).map(str::to_owned)
}

fn link_target(root: &Root, path: &str) -> Result<Option<String>> {
    let full = root.path(path);
    match root.read_link_at(&full) {
        Ok(target) => match target.into_os_string().into_string() {
            Ok(target) => Ok(Some(target)),
            Err(_) => Err(refused(root, path, "it is a symbolic link to a name that is not UTF-8")),
        },
        // EINVAL: it exists and is not a link.
        Err(e) if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::NotFound) => Ok(None),
        Err(e) => Err(Error::io("read link", &full, e)),
    }
}

fn refused(root: &Root, path: &str, why: &str) -> Error {
    Error::Refused(format!("{} cannot be changed: {why}", root.path(path).display()))
}

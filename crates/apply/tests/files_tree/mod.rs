//! A directory tree as data, with links and modes, to compare before and after.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// The state of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    Dir,
    Link(String),
    File { text: String, mode: u32 },
}

/// Every path below `dir` except `var/lib/eke` (and a `var/lib` that contains nothing else).
pub fn tree(dir: &Path) -> BTreeMap<String, Node> {
    let mut found = BTreeMap::new();
    collect(dir, "", &mut found);
    for made in ["var/lib/eke", "var/lib", "var"] {
        if !found.keys().any(|k| k.starts_with(&format!("{made}/"))) {
            found.remove(made);
        }
    }
    found
}

fn collect(dir: &Path, below: &str, found: &mut BTreeMap<String, Node>) {
    for entry in fs::read_dir(dir.join(below)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        let meta = fs::symlink_metadata(entry.path()).unwrap();
        if path == "var/lib/eke" {
            continue;
        }
        if meta.is_symlink() {
            found.insert(path, Node::Link(fs::read_link(entry.path()).unwrap().to_str().unwrap().to_owned()));
        } else if meta.is_dir() {
            found.insert(path.clone(), Node::Dir);
            collect(dir, &path, found);
        } else {
            let text = fs::read_to_string(entry.path()).unwrap();
            found.insert(path, Node::File { text, mode: meta.permissions().mode() & 0o7777 });
        }
    }
}

/// Writes `tree` into `dir`.
pub fn plant(dir: &Path, tree: &BTreeMap<String, Node>) {
    for (path, node) in tree {
        let at = dir.join(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        match node {
            Node::Dir => fs::create_dir_all(&at).unwrap(),
            Node::Link(target) => symlink(target, &at).unwrap(),
            Node::File { text, mode } => put(&at, text, *mode),
        }
    }
}

/// Writes one file.
#[expect(clippy::disallowed_methods, reason = "a fake root must be created")]
pub fn put(at: &Path, text: &str, mode: u32) {
    fs::create_dir_all(at.parent().unwrap()).unwrap();
    fs::write(at, text).unwrap();
    fs::set_permissions(at, fs::Permissions::from_mode(mode)).unwrap();
}

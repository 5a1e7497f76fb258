//! A file tree in memory, which becomes an initramfs or a directory on the host.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::error::{Result, on};
use super::newc::Archive;
use super::scratch::{make_directory, write_scratch};

/// Files, directories and links by their path below `/`.
#[derive(Debug, Default)]
pub struct Tree {
    entries: BTreeMap<String, Entry>,
}

#[derive(Debug)]
enum Entry {
    Directory,
    File { mode: u32, bytes: Vec<u8> },
    Link { target: String },
}

impl Tree {
    /// Adds a directory and its parents.
    pub fn directory(&mut self, path: &str) {
        let path = self.resolve(path);
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for end in ends.filter(|end| *end > 0) {
            self.entries.entry(path[..end].to_owned()).or_insert(Entry::Directory);
        }
    }

    /// Adds a file with permissions `mode` (such as 0o755), and the directories above it; replaces what was there.
    pub fn file(&mut self, path: &str, mode: u32, bytes: impl Into<Vec<u8>>) {
        self.place(path, Entry::File { mode, bytes: bytes.into() });
    }

    /// Adds a symbolic link, unless its path is taken. Paths that are added later and lead through a link to an absolute
    /// directory land in that directory.
    pub fn link(&mut self, path: &str, target: &str) {
        if !self.entries.contains_key(&self.resolve(path)) {
            self.place(path, Entry::Link { target: target.to_owned() });
        }
    }

    /// The tree as a newc archive.
    #[must_use]
    pub fn archive(&self) -> Vec<u8> {
        let mut archive = Archive::default();
        for (path, entry) in &self.entries {
            match entry {
                Entry::Directory => archive.add(path, 0o040_755, &[]),
                Entry::File { mode, bytes } => archive.add(path, 0o100_000 | mode, bytes),
                Entry::Link { target } => archive.add(path, 0o120_777, target.as_bytes()),
            }
        }
        archive.finish()
    }

    /// Writes the tree below an empty directory of the host.
    ///
    /// # Errors
    /// When a file cannot be made there.
    pub fn unpack(&self, below: &Path) -> Result<()> {
        for (path, entry) in &self.entries {
            let path = below.join(path);
            match entry {
                Entry::Directory => make_directory(&path)?,
                Entry::File { mode, bytes } => write_with_mode(&path, *mode, bytes)?,
                Entry::Link { target } => symlink(target, &path).map_err(on("make the link", &path))?,
            }
        }
        Ok(())
    }

    fn place(&mut self, path: &str, entry: Entry) {
        let path = self.resolve(path);
        if let Some((parent, _)) = path.rsplit_once('/') {
            self.directory(parent);
        }
        self.entries.insert(path, entry);
    }

    /// The path without its leading slash, its directories followed through absolute links.
    fn resolve(&self, path: &str) -> String {
        let path = path.trim_matches('/');
        for (at, _) in path.match_indices('/') {
            if let Some(Entry::Link { target }) = self.entries.get(&path[..at]) {
                return format!("{}{}", target.trim_matches('/'), &path[at..]);
            }
        }
        path.to_owned()
    }
}

fn write_with_mode(path: &Path, mode: u32, bytes: &[u8]) -> Result<()> {
    write_scratch(path, bytes)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).map_err(on("set the mode of", path))
}

#[cfg(test)]
mod tests {
    use super::Tree;

    fn paths(tree: &Tree) -> Vec<&str> {
        tree.entries.keys().map(String::as_str).collect()
    }

    #[test]
    fn parents_come_first_and_links_are_followed() {
        let mut tree = Tree::default();
        tree.link("/sbin", "/bin");
        tree.file("/sbin/eke", 0o755, "x");
        tree.file("/etc/rc2.d/S01eke", 0o755, "x");
        tree.link("/bin/eke", "busybox");
        assert_eq!(paths(&tree), ["bin", "bin/eke", "etc", "etc/rc2.d", "etc/rc2.d/S01eke", "sbin"]);
    }

    #[test]
    fn a_tree_can_be_written_to_the_host() {
        let place = tempfile::tempdir().unwrap();
        let mut tree = Tree::default();
        tree.file("/a/b", 0o750, "hello");
        tree.link("/a/c", "b");
        tree.unpack(place.path()).unwrap();
        assert_eq!(std::fs::read_to_string(place.path().join("a/c")).unwrap(), "hello");
    }
}

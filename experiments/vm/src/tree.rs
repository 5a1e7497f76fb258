//! A file tree in memory, which can be written as an initramfs or a directory.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::error::{Error, Result, on};
use super::newc::Archive;
use super::scratch::{make_directory, write_scratch};

/// Files, directories and links by their path below `/`.
#[derive(Debug, Default)]
pub struct Tree {
    entries: BTreeMap<String, Entry>,
    /// Modification times of the host's directories: fontconfig's cache is valid only for directories with unchanged
    /// times.
    changed: BTreeMap<String, SystemTime>,
}

#[derive(Debug)]
enum Entry {
    Directory,
    File {
        mode: u32,
        bytes: Vec<u8>,
    },
    /// A file of the host, read only when needed.
    Copy {
        from: PathBuf,
    },
    Link {
        target: String,
    },
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

    /// Adds a file with permissions `mode` (such as 0o755) and its parent directories; replaces an existing file.
    pub fn file(&mut self, path: &str, mode: u32, bytes: impl Into<Vec<u8>>) {
        self.place(path, Entry::File { mode, bytes: bytes.into() });
    }

    /// Adds a symbolic link, unless its path exists. A later path that leads through a link to an absolute directory is
    /// added to that directory.
    pub fn link(&mut self, path: &str, target: &str) {
        if !self.entries.contains_key(&self.resolve(path)) {
            self.place(path, Entry::Link { target: target.to_owned() });
        }
    }

    /// Adds all files below a directory of the host; replaces existing files, but not links and directories. Only
    /// files, directories and links are added.
    ///
    /// # Errors
    /// If one of its directories cannot be listed.
    pub fn host_directory(&mut self, from: &Path) -> Result<()> {
        self.host_entries(from, "")
    }

    /// Whether the path exists.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        self.entries.contains_key(&self.resolve(path))
    }

    /// The tree as a newc archive.
    ///
    /// # Errors
    /// If a file of the host cannot be read.
    pub fn archive(&self) -> Result<Vec<u8>> {
        let mut archive = Archive::default();
        for (path, entry) in &self.entries {
            match entry {
                Entry::Directory => archive.add(path, 0o040_755, &[]),
                Entry::File { mode, bytes } => archive.add(path, 0o100_000 | mode, bytes),
                Entry::Copy { from } => {
                    let bytes = std::fs::read(from).map_err(on("read", from))?;
                    archive.add(path, 0o100_000 | mode_of(from)?, &bytes);
                }
                Entry::Link { target } => archive.add(path, 0o120_777, target.as_bytes()),
            }
        }
        Ok(archive.finish())
    }

    /// Writes the tree into an empty directory of the host.
    ///
    /// # Errors
    /// If a file cannot be created there.
    pub fn write_to(&self, below: &Path) -> Result<()> {
        for (path, entry) in &self.entries {
            let path = below.join(path);
            match entry {
                Entry::Directory => make_directory(&path)?,
                Entry::File { mode, bytes } => write_with_mode(&path, *mode, bytes)?,
                Entry::Copy { from } => copy(from, &path)?,
                Entry::Link { target } => symlink(target, &path).map_err(on("make the link", &path))?,
            }
        }
        // Last, because creating files changes their directory's time.
        for (path, changed) in &self.changed {
            let path = below.join(path);
            let set = File::open(&path).and_then(|directory| directory.set_modified(*changed));
            set.map_err(on("set the time of", &path))?;
        }
        Ok(())
    }

    fn host_entries(&mut self, from: &Path, below: &str) -> Result<()> {
        for entry in std::fs::read_dir(from).map_err(on("list", from))? {
            let from = entry.map_err(on("list", from))?.path();
            let name = from.file_name().and_then(|name| name.to_str());
            let name = name.ok_or_else(|| Error::Recipe(format!("{} is no UTF-8 name", from.display())))?;
            self.host_entry(&from, &format!("{below}/{name}"))?;
        }
        Ok(())
    }

    fn host_entry(&mut self, from: &Path, path: &str) -> Result<()> {
        let kind = std::fs::symlink_metadata(from).map_err(on("stat", from))?.file_type();
        if kind.is_dir() {
            self.directory(path);
            if let Ok(changed) = std::fs::metadata(from).and_then(|metadata| metadata.modified()) {
                self.changed.insert(self.resolve(path), changed);
            }
            return self.host_entries(from, path);
        }
        if kind.is_symlink() {
            let target = std::fs::read_link(from).map_err(on("read the link", from))?;
            self.link(path, &target.to_string_lossy());
        } else if kind.is_file() {
            self.place(path, Entry::Copy { from: from.to_path_buf() });
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

    /// The path without its leading slash; follows absolute links in its directories.
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

/// Hard-links the file if possible (it is only read), otherwise copies it with its permissions.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if std::fs::hard_link(from, to).is_ok() {
        return Ok(());
    }
    std::fs::copy(from, to).map(drop).map_err(on("copy", from))
}

fn mode_of(path: &Path) -> Result<u32> {
    let metadata = std::fs::metadata(path).map_err(on("stat", path))?;
    Ok(metadata.permissions().mode() & 0o7777)
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
        tree.write_to(place.path()).unwrap();
        assert_eq!(std::fs::read_to_string(place.path().join("a/c")).unwrap(), "hello");
    }

    #[test]
    fn the_hosts_programs_are_not_shadowed_and_follow_the_links() {
        let host = tempfile::tempdir().unwrap();
        let mut programs = Tree::default();
        programs.file("/bin/sh", 0o750, "a real shell");
        programs.file("/lib/x/libc.so", 0o644, "c");
        programs.link("/usr/bin/vi", "/etc/alternatives/vi");
        programs.write_to(host.path()).unwrap();
        let mut tree = Tree::default();
        tree.directory("/usr/bin");
        tree.link("/bin", "/usr/bin");
        tree.link("/lib", "/usr/lib");
        tree.host_directory(host.path()).unwrap();
        tree.link("/bin/sh", "busybox");
        tree.link("/bin/vi", "busybox");
        tree.link("/bin/ls", "busybox");
        let place = tempfile::tempdir().unwrap();
        tree.write_to(place.path()).unwrap();
        let changed =
            |root: &std::path::Path, path: &str| root.join(path).metadata().unwrap().modified().unwrap();
        assert_eq!(changed(place.path(), "usr/lib/x"), changed(host.path(), "lib/x"));
        let read = |path: &str| std::fs::read_to_string(place.path().join(path)).unwrap();
        assert_eq!((read("usr/bin/sh").as_str(), read("usr/lib/x/libc.so").as_str()), ("a real shell", "c"));
        let link = |path: &str| std::fs::read_link(place.path().join(path)).unwrap();
        assert_eq!(link("usr/bin/vi").to_str(), Some("/etc/alternatives/vi"));
        assert_eq!(link("usr/bin/ls").to_str(), Some("busybox"));
        assert!(tree.has("/lib/x/libc.so") && !tree.has("/lib/y"));
    }
}

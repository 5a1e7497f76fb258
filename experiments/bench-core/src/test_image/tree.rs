//! Which files a stage has: decided here, copied in [`super::copy`].

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::hash::{Hash, Hasher};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use eke_model::units::Bytes;

use super::error::{Error, Result};
use super::libraries::Loaders;
use super::parts::{Parts, Placed, program};
use super::start::Start;
use crate::fault::on;

/// As many links in a row as the kernel follows (MAXSYMLINKS, include/linux/namei.h).
const MOST_LINKS: usize = 40;
/// What the loaders read to find libraries, where this machine has them (ld.so(8); musl's ldso/dynlink.c).
const LOADER_FILES: [&str; 3] = ["/etc/ld.so.cache", "/etc/ld-musl-x86_64.path", "/etc/ld-musl-aarch64.path"];
/// A block of the file system that the tree will be in.
const BLOCK: u64 = 4096;

/// What lies at a path of the tree.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Entry {
    Directory { mode: u32, modified_s: i64 },
    File { from: PathBuf, mode: u32, size: u64, modified_s: i64 },
    Link { target: PathBuf },
}

/// The files of a stage by their paths in it. Links stay links, and what they point to is there too.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree {
    pub(super) entries: BTreeMap<PathBuf, Entry>,
    missing: Vec<PathBuf>,
}

impl Tree {
    /// Finds out what the parts need: each program's loader and libraries, as this machine's loader names them, and
    /// scripts' interpreters. What a program opens later by itself (modules, fonts) must be among `files`; a program or a
    /// library there gets its libraries too.
    ///
    /// # Errors
    /// A program is not there, or a library of it; a file that cannot be read.
    pub fn of(parts: &Parts) -> Result<Self> {
        let mut tree = collect(parts, Path::new("/"), &super::libraries::Host)?;
        let loader_files = LOADER_FILES.map(PathBuf::from).to_vec();
        let more = collect(
            &Parts { files: loader_files, ..Parts::default() },
            Path::new("/"),
            &super::libraries::Host,
        )?;
        tree.entries.extend(more.entries);
        Ok(tree)
    }

    /// What of `files` is not on this machine.
    pub fn missing(&self) -> &[PathBuf] {
        &self.missing
    }

    /// How many bytes its files have.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.sizes().sum())
    }

    /// What a file system needs for it, without its own tables.
    pub(super) fn on_disk(&self) -> u64 {
        let files: u64 = self.sizes().map(|size| size.div_ceil(BLOCK) * BLOCK).sum();
        files + self.entries.len() as u64 * BLOCK / 2
    }

    /// Another one for another tree: paths, sizes, modes and times of change go into it. It is only good for a cache.
    pub fn key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.entries.hash(&mut hasher);
        hasher.finish()
    }

    fn sizes(&self) -> impl Iterator<Item = u64> {
        self.entries.values().map(|entry| if let Entry::File { size, .. } = entry { *size } else { 0 })
    }
}

/// The same for the machine below `source`.
pub(super) fn collect(parts: &Parts, source: &Path, loaders: &dyn Loaders) -> Result<Tree> {
    let mut all = Collect::new(source, loaders);
    for path in programs(parts)? {
        all.program(&path)?;
    }
    for Placed { from, to } in &parts.placed {
        all.placed(from, to)?;
    }
    all.all_below(&parts.files)?;
    all.plain = true;
    all.all_below(&parts.plain)?;
    Ok(all.tree)
}

fn programs(parts: &Parts) -> Result<Vec<PathBuf>> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let (mut found, mut names) = (Vec::new(), Vec::new());
    for name in &parts.programs {
        match program(name, &path) {
            Some(path) => found.push(path),
            None => names.push(name.display().to_string()),
        }
    }
    if names.is_empty() { Ok(found) } else { Err(Error::Missing { names }) }
}

struct Collect<'a> {
    source: &'a Path,
    loaders: &'a dyn Loaders,
    /// The first program's: it knows the libraries of modules too.
    loader: Option<PathBuf>,
    walked: BTreeSet<PathBuf>,
    /// Do not search for what modules need.
    plain: bool,
    tree: Tree,
}

impl<'a> Collect<'a> {
    fn new(source: &'a Path, loaders: &'a dyn Loaders) -> Self {
        let tree = Tree::default();
        Self { source, loaders, loader: None, walked: BTreeSet::new(), plain: false, tree }
    }

    fn all_below(&mut self, paths: &[PathBuf]) -> Result<()> {
        for path in paths {
            match self.with_all_below(path) {
                Err(e) if is_absent(&e) => self.tree.missing.push(path.clone()),
                done => done?,
            }
        }
        Ok(())
    }

    fn program(&mut self, path: &Path) -> Result<()> {
        let real = self.follow(path)?;
        self.needs_of(&self.on_source(&real))
    }

    fn placed(&mut self, from: &Path, to: &Path) -> Result<()> {
        let meta = from.metadata().map_err(on("read the attributes of", from))?;
        for dir in to.ancestors().skip(1).filter(|d| d.parent().is_some()) {
            let made = Entry::Directory { mode: 0o755, modified_s: 0 };
            self.tree.entries.entry(dir.to_owned()).or_insert(made);
        }
        self.tree.entries.insert(to.to_owned(), file(from, &meta));
        self.needs_of(from)
    }

    /// What `file` of this machine needs to start.
    fn needs_of(&mut self, file: &Path) -> Result<()> {
        match self.loaders.start(file)? {
            Start::Loader(loader) => {
                self.follow(&loader)?;
                self.loader.get_or_insert_with(|| loader.clone());
                self.libraries(&loader, file)
            }
            Start::Script(interpreter, argument) => self.interpreter(&interpreter, argument),
            Start::Alone | Start::Data => Ok(()),
        }
    }

    fn interpreter(&mut self, interpreter: &Path, argument: Option<String>) -> Result<()> {
        self.program(interpreter)?;
        let name = argument.filter(|_| interpreter.ends_with("env"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = name.and_then(|name| program(Path::new(&name), &path));
        found.map_or(Ok(()), |found| self.program(&found))
    }

    fn libraries(&mut self, loader: &Path, file: &Path) -> Result<()> {
        for library in self.loaders.libraries(loader, file)? {
            self.follow(&library)?;
            // Another processor (the small machine's) takes the plain one.
            if let Some(plain) = without_capabilities(&library) {
                let _ = self.follow(&plain);
            }
        }
        Ok(())
    }

    fn with_all_below(&mut self, path: &Path) -> Result<()> {
        let is_link = self.on_source(path).is_symlink();
        let real = self.follow(path)?;
        let here = self.on_source(&real);
        if self.plain && is_link && here.is_dir() {
            // Packages have links such as /lib to /usr/lib, which is not theirs as a whole.
            return Ok(());
        }
        if here.is_file() {
            if !self.plain {
                self.module(&here, &real);
            }
            return Ok(());
        }
        if real.parent().is_none() || !self.walked.insert(real.clone()) {
            return Ok(());
        }
        for entry in std::fs::read_dir(&here).map_err(on("list", &here))? {
            let entry = entry.map_err(on("list", &here))?;
            match self.with_all_below(&real.join(entry.file_name())) {
                // A link into the void is copied as it is.
                Err(e) if is_absent(&e) => {}
                done => done?,
            }
        }
        Ok(())
    }

    /// A module's libraries where they can be found: a directory may hold modules that nothing here can load.
    fn module(&mut self, here: &Path, real: &Path) {
        let executable =
            matches!(self.tree.entries.get(real), Some(Entry::File { mode, .. }) if mode & 0o111 != 0);
        let name = here.file_name().unwrap_or_default().to_string_lossy();
        if !executable && !name.contains(".so") {
            return;
        }
        let _ = match (self.loaders.start(here), self.loader.clone()) {
            (Ok(Start::Alone), Some(loader)) => self.libraries(&loader, here),
            _ => self.needs_of(here),
        };
    }

    /// Adds everything on the way to `path`, links too, and gives the path that it comes to.
    fn follow(&mut self, path: &Path) -> Result<PathBuf> {
        let mut at = PathBuf::from("/");
        let mut to_do = reversed(path);
        let mut links = 0;
        while let Some(name) = to_do.pop() {
            if name == Path::new("..") {
                at.pop();
                continue;
            }
            let next = at.join(name);
            let here = self.on_source(&next);
            let meta = here.symlink_metadata().map_err(on("read the attributes of", &here))?;
            if !meta.is_symlink() {
                self.add(&next, &here, &meta);
                at = next;
                continue;
            }
            links += 1;
            if links > MOST_LINKS {
                return Err(on("follow the links of", path)(rustix::io::Errno::LOOP).into());
            }
            let target = std::fs::read_link(&here).map_err(on("read the link", &here))?;
            to_do.extend(reversed(&target));
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
            self.tree.entries.insert(next, Entry::Link { target });
        }
        Ok(at)
    }

    fn add(&mut self, path: &Path, here: &Path, meta: &Metadata) {
        let entry = if meta.is_dir() {
            Entry::Directory { mode: mode(meta, 0o555), modified_s: meta.mtime() }
        } else if meta.is_file() {
            file(here, meta)
        } else {
            return;
        };
        self.tree.entries.insert(path.to_owned(), entry);
    }

    fn on_source(&self, path: &Path) -> PathBuf {
        self.source.join(path.strip_prefix("/").unwrap_or(path))
    }
}

fn file(from: &Path, meta: &Metadata) -> Entry {
    Entry::File { from: from.to_owned(), mode: mode(meta, 0o444), size: meta.len(), modified_s: meta.mtime() }
}

/// Without setuid bits, and readable for `nobody`, as whom the programs run.
fn mode(meta: &Metadata, at_least: u32) -> u32 {
    meta.mode() & 0o777 | at_least
}

/// The names in a path, the last first.
fn reversed(path: &Path) -> Vec<PathBuf> {
    let names = path.components().rev();
    names
        .filter(|c| matches!(c, Component::Normal(_) | Component::ParentDir))
        .map(|c| PathBuf::from(c.as_os_str()))
        .collect()
}

/// `/lib/glibc-hwcaps/x86-64-v3/liba.so` without the two names in the middle (ld.so(8)).
fn without_capabilities(library: &Path) -> Option<PathBuf> {
    let level = library.parent()?;
    let directory = level.parent().filter(|dir| dir.ends_with("glibc-hwcaps"))?;
    Some(directory.parent()?.join(library.file_name()?))
}

fn is_absent(error: &Error) -> bool {
    matches!(error, Error::Io(fault) if matches!(fault.source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;

//! The modules of a crate: their files, declarations, imports and names.

use crate::tokens::{self, Found};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// One module: a file, or a block in one.
#[derive(Debug, Default)]
pub struct Module {
    /// Its file.
    pub file: PathBuf,
    /// The module that declares it; `None` for the root.
    pub parent: Option<usize>,
    /// The modules that it declares, by name.
    pub children: BTreeMap<String, usize>,
    /// Its declarations, imports and names.
    pub found: Found,
}

/// All modules of a crate; the first is the root.
#[derive(Debug, Default)]
pub struct Tree {
    /// The modules.
    pub modules: Vec<Module>,
}

impl Tree {
    /// Reads the crate with this root file. Skips modules for tests.
    ///
    /// # Errors
    /// A file that cannot be read, or is not Rust.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        let directory = root.parent().unwrap_or(Path::new(".")).to_path_buf();
        tree.add_file(root, &directory, None)?;
        Ok(tree)
    }

    /// `directory` contains the files of its children.
    fn add_file(&mut self, file: &Path, directory: &Path, parent: Option<usize>) -> io::Result<usize> {
        let text = fs::read_to_string(file)
            .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", file.display())))?;
        let found = tokens::read(&text).map_err(|e| io::Error::other(format!("{}: {e}", file.display())))?;
        self.add(file, directory, parent, found)
    }

    fn add(
        &mut self,
        file: &Path,
        directory: &Path,
        parent: Option<usize>,
        mut found: Found,
    ) -> io::Result<usize> {
        let index = self.modules.len();
        let declared = std::mem::take(&mut found.files);
        let inline = std::mem::take(&mut found.inline);
        self.modules.push(Module { file: file.to_path_buf(), parent, children: BTreeMap::new(), found });
        for (name, path) in declared {
            let below = directory.join(&name);
            let named = path.and_then(|path| Some(file.parent()?.join(path)));
            let beside = named.unwrap_or_else(|| directory.join(format!("{name}.rs")));
            let child_file = if beside.exists() { beside } else { below.join("mod.rs") };
            let child = self.add_file(&child_file, &below, Some(index))?;
            self.modules[index].children.insert(name, child);
        }
        for (name, content) in inline {
            let child = self.add(file, &directory.join(&name), Some(index), content)?;
            self.modules[index].children.insert(name, child);
        }
        Ok(index)
    }

    /// Whether module `inner` is part of module `outer`.
    pub fn is_within(&self, inner: usize, outer: usize) -> bool {
        std::iter::successors(Some(inner), |at| self.modules[*at].parent).any(|at| at == outer)
    }

    /// Its files.
    pub fn files(&self) -> BTreeSet<&Path> {
        self.modules.iter().map(|module| module.file.as_path()).collect()
    }
}

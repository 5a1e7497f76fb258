//! Asks this machine's loaders which libraries a file needs.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::ReadCache;

use super::error::{Error, Result};
use super::start::{self, Start};
use crate::fault::{self, on};

/// How files start, and what they need.
pub(super) trait Loaders {
    /// How this file starts.
    fn start(&self, file: &Path) -> Result<Start>;
    /// The libraries that the loader loads for this file, transitively.
    fn libraries(&self, loader: &Path, file: &Path) -> Result<Vec<PathBuf>>;
}

/// This machine.
pub(super) struct Host;

impl Loaders for Host {
    fn start(&self, file: &Path) -> Result<Start> {
        let open = File::open(file).map_err(on("open", file))?;
        Ok(start::of(&ReadCache::new(open)))
    }

    /// Asks the loader itself. It knows its cache, paths and links, and runs nothing of the file.
    fn libraries(&self, loader: &Path, file: &Path) -> Result<Vec<PathBuf>> {
        let mut command = Command::new(loader);
        command
            .arg("--list")
            .arg(file)
            .env_remove("LD_LIBRARY_PATH")
            .env_remove("LD_PRELOAD")
            .env("LC_ALL", "C");
        let output = command.output().map_err(on("run the loader", loader))?;
        let (found, missing) = start::libraries(&String::from_utf8_lossy(&output.stdout));
        if let Some(library) = missing.into_iter().next() {
            return Err(Error::Library { program: file.to_owned(), library });
        }
        if output.status.success() {
            return Ok(found);
        }
        Err(fault::Command::ended(&command, &output).into())
    }
}

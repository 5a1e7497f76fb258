//! The user's configuration files.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use eke_model::config::{ConfigError, Settings, Source};

use crate::error::{Error, Result};
use crate::root::Root;

const MAIN: &str = "etc/eke/eke.toml";
const DROP_INS: &str = "etc/eke/eke.toml.d";
/// More than any configuration has. The agent's memory is locked, and it reads the files again while it runs.
const MOST_BYTES: u64 = 1 << 20;

/// Why the settings cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] Error),
    /// A key or value is wrong.
    #[error(transparent)]
    Wrong(#[from] ConfigError),
}

/// The shipped defaults, then `/etc/eke/eke.toml`, then `/etc/eke/eke.toml.d/*.toml` in the order of their names.
/// Missing files are fine. `instead` names one file that replaces them all and must exist; a relative path begins in the working directory.
///
/// # Errors
/// An unreadable file, or the first wrong key or value with its file and line.
pub fn load(root: &Root, instead: Option<&str>) -> Result<Settings, SettingsError> {
    let texts = match instead {
        Some(path) => vec![(path.to_owned(), instead_of_installed(root, Path::new(path))?)],
        None => installed(root)?,
    };
    let sources: Vec<Source<'_>> = texts.iter().map(|(name, text)| Source { name, text }).collect();
    Ok(Settings::from_sources(&sources)?)
}

/// The text of a file that the user names; also of a pipe (`--config <(...)`), and of a device that ends.
fn instead_of_installed(root: &Root, path: &Path) -> Result<String> {
    let path = std::path::absolute(path).map_err(|e| Error::io("read", path, e))?;
    refuse_named_pipe(root, &path)?;
    let at = root.path(path);
    let mut text = Vec::new();
    let read = File::open(&at).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut text));
    read.map_err(|e| Error::io("read", &at, e))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(too_long(&at));
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// To open one waits for a program that writes to it, which may never come.
fn refuse_named_pipe(root: &Root, path: &Path) -> Result<()> {
    let at = root.path(path);
    let is_open_here = ["/dev/", "/proc/"].iter().any(|dir| path.starts_with(dir));
    if !is_open_here && at.metadata().is_ok_and(|file| file.file_type().is_fifo()) {
        return Err(Error::Refused(format!("{} is a pipe, and no configuration of eke", at.display())));
    }
    Ok(())
}

fn installed(root: &Root) -> Result<Vec<(String, String)>> {
    let drop_ins = root.list(DROP_INS)?.into_iter().filter(|n| n.ends_with(".toml"));
    let paths = std::iter::once(MAIN.to_owned()).chain(drop_ins.map(|n| format!("{DROP_INS}/{n}")));
    let mut texts = Vec::new();
    for path in paths {
        refuse_named_pipe(root, Path::new(&path))?;
        refuse_too_long(root, &path)?;
        if let Some(text) = root.read_if_exists(&path)? {
            texts.push((format!("/{path}"), text));
        }
    }
    Ok(texts)
}

fn refuse_too_long(root: &Root, path: &str) -> Result<()> {
    let path = root.path(path);
    match path.metadata() {
        Ok(file) if file.len() > MOST_BYTES => Err(too_long(&path)),
        _ => Ok(()),
    }
}

fn too_long(path: &Path) -> Error {
    let path = path.display();
    Error::Refused(format!("{path} has more than {MOST_BYTES} bytes: it is no configuration of eke"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_path_begins_in_the_working_directory() {
        let here = std::env::current_dir().unwrap().join("no-such.toml");
        let failure = load(&Root::host(), Some("no-such.toml")).unwrap_err();
        assert!(failure.to_string().contains(here.to_str().unwrap()), "{failure}");
    }
}

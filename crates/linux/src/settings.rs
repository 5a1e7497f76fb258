//! The user's configuration files.

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
/// Missing files are fine. `instead` names one file that replaces them all and must exist.
///
/// # Errors
/// An unreadable file, or the first wrong key or value with its file and line.
pub fn load(root: &Root, instead: Option<&str>) -> Result<Settings, SettingsError> {
    let texts = match instead {
        Some(path) => {
            refuse_too_long(root, path)?;
            vec![(path.to_owned(), root.read(path)?)]
        }
        None => installed(root)?,
    };
    let sources: Vec<Source<'_>> = texts.iter().map(|(name, text)| Source { name, text }).collect();
    Ok(Settings::from_sources(&sources)?)
}

fn installed(root: &Root) -> Result<Vec<(String, String)>> {
    let drop_ins = root.list(DROP_INS)?.into_iter().filter(|n| n.ends_with(".toml"));
    let paths = std::iter::once(MAIN.to_owned()).chain(drop_ins.map(|n| format!("{DROP_INS}/{n}")));
    let mut texts = Vec::new();
    for path in paths {
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
        Ok(file) if file.len() > MOST_BYTES => Err(Error::Refused(format!(
            "{} has {} bytes, and a configuration at most {MOST_BYTES}: it is no configuration of eke",
            path.display(),
            file.len()
        ))),
        _ => Ok(()),
    }
}

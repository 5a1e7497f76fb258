//! The source of the content's bytes.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use eke_bench_core::fault::on;
use eke_model::units::{Bytes, MIB};

use super::ratio;
use crate::error::{Error, Result};
use crate::random::stream;

/// Directories where ordinary machines have files of all kinds.
const DIRECTORIES: [&str; 4] = ["/usr/share", "/usr/lib", "/usr/bin", "/usr/sbin"];
/// The bytes that are enough: pieces begin at any byte, so none is repeated.
const ENOUGH: u64 = 256 * MIB;
/// The sizes of this machine's files that are taken. Smaller files are mostly headers, and a few larger ones would fill the corpus.
const SIZES: std::ops::RangeInclusive<u64> = 32 << 10..=32 << 20;
/// The least compression ratio of this machine's files. All files together compress 1.9 to 1 on Debian; these compress 2.5 to 1, as text and
/// tables do.
const LEAST_RATIO: f64 = 2.3;

/// Files to cut pieces from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corpus {
    /// The files with their sizes.
    pub files: Vec<(PathBuf, u64)>,
    /// Their description, for the report.
    pub about: String,
}

impl Corpus {
    /// The files below `dir`; without a directory, files of this machine that everybody may read.
    ///
    /// # Errors
    /// The directory cannot be read, or there is nothing to cut from.
    pub fn find(dir: Option<&Path>) -> Result<Self> {
        let (files, about) = match dir {
            Some(dir) => (own(dir)?, format!("the files below {}", dir.display())),
            None => {
                let about = format!(
                    "files of this machine ({}) that everybody may read and whose beginnings compress at least {LEAST_RATIO} to 1",
                    DIRECTORIES.join(", ")
                );
                (of_this_machine(), about)
            }
        };
        let total = files.iter().map(|(_, size)| size).sum();
        if total == 0 {
            return Err(Error::NoCorpus { place: dir.map(Path::to_owned) });
        }
        let about = format!("{about}: {} files, {}", files.len(), Bytes(total));
        Ok(Self { files, about })
    }

    /// The total bytes of the files.
    pub fn total(&self) -> u64 {
        self.files.iter().map(|(_, size)| size).sum()
    }
}

fn own(dir: &Path) -> Result<Vec<(PathBuf, u64)>> {
    let mut found = Vec::new();
    add_files(dir, &mut found).map_err(on("read", dir))?;
    Ok(found.into_iter().map(|(path, meta)| (path, meta.len())).filter(|(_, size)| *size > 0).collect())
}

fn of_this_machine() -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for dir in DIRECTORIES {
        let _ = add_files(Path::new(dir), &mut found);
    }
    found.retain(|(_, meta)| SIZES.contains(&meta.len()) && meta.mode() & 0o004 != 0);
    // An order that mixes kinds, and stays the same as long as the files do.
    stream(1).shuffle(&mut found);
    let (mut taken, mut total) = (Vec::new(), 0);
    for (path, meta) in found {
        if total >= ENOUGH {
            break;
        }
        if ratio::of_head(&path).is_ok_and(|ratio| ratio >= LEAST_RATIO) {
            total += meta.len();
            taken.push((path, meta.len()));
        }
    }
    taken
}

/// Adds all plain files below `dir`, in the order of their names. Leaves out subdirectories that cannot be read.
fn add_files(dir: &Path, found: &mut Vec<(PathBuf, std::fs::Metadata)>) -> io::Result<()> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(dir)?.flatten().map(|e| e.path()).collect();
    entries.sort();
    for path in entries {
        match path.symlink_metadata() {
            Ok(meta) if meta.is_dir() => drop(add_files(&path, found)),
            Ok(meta) if meta.is_file() => found.push((path, meta)),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_and_an_empty_directory_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        let error = |path: &Path| Corpus::find(Some(path)).unwrap_err().to_string();
        assert!(error(&dir.path().join("x")).starts_with("cannot read "), "{}", error(&dir.path().join("x")));
        assert!(error(dir.path()).contains("--corpus"), "{}", error(dir.path()));
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::fs::copy("/proc/self/exe", dir.path().join("d/f")).unwrap();
        let corpus = Corpus::find(Some(dir.path())).unwrap();
        assert_eq!(corpus.files.len(), 1);
        assert!(corpus.about.contains("1 files"), "{}", corpus.about);
    }
}

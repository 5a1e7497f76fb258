//! Where the content's bytes come from.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use eke_bench_core::fault::on;
use eke_bench_core::random::Random;
use eke_model::units::{Bytes, MIB};

use super::ratio;
use crate::error::{Error, Result};

/// Where an ordinary machine has files of all kinds.
const PLACES: [&str; 4] = ["/usr/share", "/usr/lib", "/usr/bin", "/usr/sbin"];
/// So much of them is enough: pieces begin at any byte, so none comes twice.
const ENOUGH: u64 = 256 * MIB;
/// Of this machine's files, smaller ones are mostly a head, and larger ones would be all there is.
const SIZES: std::ops::RangeInclusive<u64> = 32 << 10..=32 << 20;
/// Of this machine's files, those that pack less are left out: all together pack 1.9 to 1 on a Debian, these 2.5, as text and tables do.
const LEAST_RATIO: f64 = 2.3;

/// Files to cut pieces from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corpus {
    /// Each with its size.
    pub files: Vec<(PathBuf, u64)>,
    /// For the report.
    pub about: String,
}

impl Corpus {
    /// The files below `dir`; without one, some of this machine's that everybody may read.
    ///
    /// # Errors
    /// The directory cannot be read, or there is nothing to cut from.
    pub fn find(dir: Option<&Path>) -> Result<Self> {
        let (files, about) = match dir {
            Some(dir) => (own(dir)?, format!("the files below {}", dir.display())),
            None => {
                let about = format!(
                    "files of this machine ({}) that everybody may read and whose beginnings pack at least {LEAST_RATIO} to 1",
                    PLACES.join(", ")
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

    /// All bytes.
    pub fn total(&self) -> u64 {
        self.files.iter().map(|(_, size)| size).sum()
    }
}

fn own(dir: &Path) -> Result<Vec<(PathBuf, u64)>> {
    let mut found = Vec::new();
    below(dir, &mut found).map_err(on("read", dir))?;
    Ok(found.into_iter().map(|(path, meta)| (path, meta.len())).filter(|(_, size)| *size > 0).collect())
}

fn of_this_machine() -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for place in PLACES {
        let _ = below(Path::new(place), &mut found);
    }
    found.retain(|(_, meta)| SIZES.contains(&meta.len()) && meta.mode() & 0o004 != 0);
    // In an order that mixes kinds and is the same as long as the files are.
    Random::new(1).shuffle(&mut found);
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

/// All plain files below, in the order of their names. What cannot be read further down is left out.
fn below(dir: &Path, found: &mut Vec<(PathBuf, std::fs::Metadata)>) -> io::Result<()> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(dir)?.flatten().map(|e| e.path()).collect();
    entries.sort();
    for path in entries {
        match path.symlink_metadata() {
            Ok(meta) if meta.is_dir() => drop(below(&path, found)),
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
    fn nothing_to_cut_from_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let said = |path: &Path| Corpus::find(Some(path)).unwrap_err().to_string();
        assert!(said(&dir.path().join("x")).starts_with("cannot read "), "{}", said(&dir.path().join("x")));
        assert!(said(dir.path()).contains("--corpus"), "{}", said(dir.path()));
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::fs::copy("/proc/self/exe", dir.path().join("d/f")).unwrap();
        let corpus = Corpus::find(Some(dir.path())).unwrap();
        assert_eq!(corpus.files.len(), 1);
        assert!(corpus.about.contains("1 files"), "{}", corpus.about);
    }
}

//! Why an experiment has no documents.

use std::io;
use std::path::{Path, PathBuf};

use super::pages::Unfit;

/// Why an experiment has no documents.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The user's directory cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The user's directory has no PDF file.
    #[error("no PDF file (*.pdf, *.pdf.gz) is below {}", .0.display())]
    NonePresent(PathBuf),
    /// None of the files can be shown.
    #[error("no document below {} can be shown: {}", path.display(), listed(unfit))]
    NoneReadable {
        /// The directory.
        path: PathBuf,
        /// Each with its reason.
        unfit: Vec<(PathBuf, Unfit)>,
    },
    /// No document has enough pages.
    #[error("none of {found} documents has {pages} pages{longest}; {}", HOW)]
    NoneFits {
        /// How many documents were found.
        found: usize,
        /// How many pages are required.
        pages: u32,
        /// The document with the most pages, in brackets.
        longest: String,
    },
}

/// What the user can do.
const HOW: &str = "`make bench-deps` installs documentation with PDF files, or name a directory of your own";
/// An error names at most so many files.
const SHOWN: usize = 5;

fn listed(unfit: &[(PathBuf, Unfit)]) -> String {
    let mut lines: Vec<String> =
        unfit.iter().take(SHOWN).map(|(path, why)| format!("{} {why}", name(path))).collect();
    if unfit.len() > SHOWN {
        lines.push(format!("and {} more", unfit.len() - SHOWN));
    }
    lines.join("; ")
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The result of everything in [`crate::documents`].
pub type Result<T> = std::result::Result<T, Error>;

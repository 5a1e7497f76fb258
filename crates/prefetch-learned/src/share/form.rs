//! The text of a file of launches: JSON, after it the signature. Pure. It comes from another machine: every number and length is bounded.

use std::path::PathBuf;
use std::time::Duration;

use eke_prefetch_model::system::{is_program, is_system};
use eke_prefetch_model::{FileSet, Kind, Pages, Program, Span, Stamp, Touched, UsedBy};
use serde::{Deserialize, Serialize};

/// The first field of each file.
pub const FORM: &str = "eke launches 1";
/// The largest file. A program has about 20 KB.
pub const MOST_BYTES: u64 = 32 << 20;
const MOST_PROGRAMS: usize = 1000;
/// As the learner's own bounds.
const MOST_FILES: usize = 4096;
const MOST_SPANS: usize = 1 << 16;
/// 16 TiB: ext4's largest file.
const MOST_PAGES: u64 = 1 << 32;
const LONGEST_PATH: usize = 4096;
/// OpenSSH's, PROTOCOL.sshsig.
const SIGNATURE: &str = "-----BEGIN SSH SIGNATURE-----";
const SIGNATURE_END: &str = "-----END SSH SIGNATURE-----";

/// What is wrong with a file, as a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Wrong(String);

/// A whole file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    form: String,
    programs: Vec<ExportedProgram>,
}

/// A program as it leaves a machine: no user, no hour, no count of starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportedProgram {
    exe: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    script: Option<PathBuf>,
    /// Of its coldest launch.
    took_ms: u64,
    files: Vec<ExportedFile>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExportedFile {
    path: PathBuf,
    kind: Kind,
    /// With `mtime_ns`, the version: those of a package are the same on every machine.
    #[serde(default, skip_serializing_if = "is_zero")]
    size: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    mtime_ns: i64,
    weight: f32,
    /// First page and the page after the last, of 4 KiB.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pages: Vec<[u64; 2]>,
}

fn is_zero<N: Default + PartialEq>(n: &N) -> bool {
    *n == N::default()
}

impl ExportedProgram {
    /// A learned program's part that is the system's.
    pub fn new(program: &Program, took: Duration, set: &FileSet) -> Self {
        let file = |file: &Touched| ExportedFile {
            path: file.path.clone(),
            kind: file.kind,
            size: file.stamp.size,
            mtime_ns: file.stamp.mtime_ns,
            weight: file.weight,
            pages: file.pages.spans().iter().map(|span| [span.first, span.end]).collect(),
        };
        Self {
            exe: program.exe.clone(),
            script: program.script.clone(),
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            files: set.files.iter().map(file).collect(),
        }
    }

    /// The program.
    pub fn program(&self) -> Program {
        Program { exe: self.exe.clone(), script: self.script.clone() }
    }

    /// The duration of its cold launch; an hour at most.
    pub fn took(&self) -> Duration {
        Duration::from_millis(self.took_ms.min(3_600_000))
    }

    /// Its files. Their stamps have sizes and times only.
    pub fn set(&self) -> FileSet {
        let touched = |file: &ExportedFile| Touched {
            path: file.path.clone(),
            kind: file.kind,
            stamp: Stamp { size: file.size, mtime_ns: file.mtime_ns, ..Stamp::default() },
            pages: file.pages.iter().filter_map(|[first, end]| Span::new(*first, *end)).collect::<Pages>(),
            stale: Pages::default(),
            weight: file.weight,
            used_by: UsedBy::Unknown,
        };
        FileSet { files: self.files.iter().map(touched).collect() }
    }

    fn check(&self) -> Result<(), Wrong> {
        let name = self.exe.display();
        if !is_program(&self.program()) {
            return Err(Wrong(format!("{name} is no program of a package")));
        }
        if self.files.len() > MOST_FILES {
            return Err(Wrong(format!("{name} has {} files, more than {MOST_FILES}", self.files.len())));
        }
        match self.files.iter().find_map(ExportedFile::wrong) {
            Some(why) => Err(Wrong(format!("a file of {name} {why}"))),
            None => Ok(()),
        }
    }
}

impl ExportedFile {
    fn wrong(&self) -> Option<&'static str> {
        let is_span = |[first, end]: &[u64; 2]| first < end && *end <= MOST_PAGES;
        let has_pages = !self.pages.is_empty();
        if self.path.as_os_str().len() > LONGEST_PATH || !is_system(&self.path) {
            Some("is of no package")
        } else if self.kind == Kind::Device || (self.kind == Kind::Directory && has_pages) {
            Some("is no file with pages, and no directory without")
        } else if self.pages.len() > MOST_SPANS || !self.pages.iter().all(is_span) {
            Some("has impossible pages")
        } else if !(0.0..=1.0).contains(&self.weight) {
            Some("has an impossible weight")
        } else {
            None
        }
    }
}

/// The text without a signature.
///
/// # Errors
/// A path is not UTF-8; [`is_system`] leaves those out.
pub fn encode(programs: Vec<ExportedProgram>) -> serde_json::Result<String> {
    let document = Document { form: FORM.to_owned(), programs };
    Ok(serde_json::to_string(&document)? + "\n")
}

/// Splits a file into what is signed and the signature, if it has one.
pub fn split(text: &str) -> (&str, Option<&str>) {
    match text.find(SIGNATURE) {
        Some(at) => (&text[..at], Some(&text[at..])),
        None => (text, None),
    }
}

/// Whether the file ends before its document does.
pub fn is_cut(text: &str) -> bool {
    serde_json::from_str::<Document>(split(text).0).is_err_and(|e| e.is_eof())
}

/// Whether it ends within its signature.
pub fn is_signature_cut(text: &str) -> bool {
    let begun = text.rsplit_once('\n').map_or("", |(_, last)| last);
    match split(text).1 {
        Some(signature) => !signature.contains(SIGNATURE_END),
        None => !begun.is_empty() && SIGNATURE.starts_with(begun),
    }
}

/// The programs of the signed part.
///
/// # Errors
/// [`Wrong`]: not this form, or a number or path beyond its bounds.
pub fn decode(text: &str) -> Result<Vec<ExportedProgram>, Wrong> {
    let document: Document = serde_json::from_str(text)
        .map_err(|e| Wrong(format!("it is not a file of `eke prefetch export`: {e}")))?;
    if document.form != FORM {
        return Err(Wrong(format!("its form is {:?}; this eke reads {FORM:?}", document.form)));
    }
    if document.programs.len() > MOST_PROGRAMS {
        return Err(Wrong(format!("it has {} programs, more than {MOST_PROGRAMS}", document.programs.len())));
    }
    document.programs.iter().try_for_each(ExportedProgram::check)?;
    Ok(document.programs)
}

#[cfg(test)]
#[path = "form_tests.rs"]
mod tests;

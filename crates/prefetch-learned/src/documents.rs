//! What `prefetch ... --json` prints. A path that is not UTF-8 is an array of its bytes.

use std::path::PathBuf;

use eke_model::units::Bytes;
use serde::Serialize;

/// `prefetch list`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct List {
    /// The store's file.
    #[serde(with = "eke_model::path_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub store: PathBuf,
    /// Its size; none if nothing has been learned.
    pub bytes: Option<Bytes>,
    /// The highest weight first.
    pub programs: Vec<Program>,
}

/// A program whose files are known.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Program {
    /// The executable.
    #[serde(with = "eke_model::path_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub exe: PathBuf,
    /// The script that it runs, as an array of bytes if it is not UTF-8.
    #[serde(serialize_with = "path_or_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub script: Option<PathBuf>,
    /// Launches seen.
    pub launches: u32,
    /// Launches whose files were learned.
    pub learned: u32,
    /// When it was started last, in seconds since 1970.
    pub last_seen_s: i64,
    /// Duration of the last learned launch, in milliseconds.
    pub took_ms: u64,
    /// Bytes that this launch read from disks.
    pub cold: Bytes,
    /// Duration of the launch that read most, in milliseconds.
    pub coldest_took_ms: u64,
    /// Bytes that this launch read from disks.
    pub coldest: Bytes,
    /// The number of its launches, each with a half-life of 30 days.
    pub weight: f64,
}

/// `prefetch show`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Show {
    /// The program.
    pub program: Program,
    /// The size of its pages in all files.
    pub bytes: Bytes,
    /// In order of first use.
    pub files: Vec<File>,
}

/// What a program uses of a file.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct File {
    /// Where it is.
    #[serde(with = "eke_model::path_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub path: PathBuf,
    /// What it is.
    pub kind: FileKind,
    /// The size of its pages.
    pub bytes: Bytes,
    /// Contiguous pieces of the file.
    pub pieces: usize,
    /// The share of recent launches that used it.
    pub weight: f32,
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// The device of a file system: its metadata.
    Device,
}

/// `prefetch forget`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Forget {
    /// The program that is forgotten.
    pub forgotten: Program,
}

/// `prefetch explain`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explain {
    /// The latest first.
    pub decisions: Vec<Decision>,
}

/// A decision about a program's files, and why.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Decision {
    /// When, in seconds since 1970.
    pub at_s: i64,
    /// The program as text; its number if it is no longer known.
    pub program: String,
    /// `ahead` of a predicted start, at `exec`, or because a `session` began.
    pub occasion: String,
    /// The predicted probability of its start.
    pub probability: f64,
    /// True if anything was read.
    pub chosen: bool,
    /// What was done and why, with numbers.
    pub why: String,
    /// Bytes chosen for the program, if it started within 20 minutes; none if unknown.
    pub used: Option<Bytes>,
    /// Bytes chosen for the program, if it did not start within 20 minutes; none if unknown.
    pub wasted: Option<Bytes>,
}

/// `prefetch boot`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Boot {
    /// When the machine booted, in seconds since 1970.
    pub booted_s: i64,
    /// Seconds after that in which a decision is one of the boot.
    pub within_s: u64,
    /// Bytes that were to be read, at most.
    pub chosen: Bytes,
    /// The earliest first.
    pub decisions: Vec<Decision>,
}

/// `prefetch explain --missing`: what the last recorded start of a program read from the disk itself, although eke had read for it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Missing {
    /// The program as text.
    pub program: String,
    /// When it started, in seconds since 1970.
    pub at_s: i64,
    /// Duration of the start, in milliseconds.
    pub took_ms: u64,
    /// What eke had chosen for it ahead, or read at its exec.
    pub read: Bytes,
    /// What it read itself and used.
    pub missing: Bytes,
    /// The part of that which earlier starts had used: not read by eke, read too late, or evicted before.
    pub known: Bytes,
    /// The number of files with such pages.
    pub in_files: usize,
    /// The 64 with the most bytes, the largest first.
    pub files: Vec<MissingFile>,
}

/// What a start read itself of a file.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MissingFile {
    /// Where it is.
    #[serde(with = "eke_model::path_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub path: PathBuf,
    /// What it is.
    pub kind: FileKind,
    /// What the start read itself of it.
    pub missing: Bytes,
    /// The part of that which earlier starts had used.
    pub known: Bytes,
    /// The first 16 runs of these pages of 4 KiB: the first page, and the page after the last.
    pub pages: Vec<[u64; 2]>,
}

/// `prefetch trace`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trace {
    /// The file.
    #[serde(with = "eke_model::path_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub output: PathBuf,
    /// True if names are hashes.
    pub hashed: bool,
    /// Sessions, starts and stops in it.
    pub events: usize,
    /// Programs whose files are in it.
    pub programs: usize,
    /// Pieces of files in it.
    pub maps: usize,
}

/// `prefetch export`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Export {
    /// The file.
    #[serde(with = "eke_model::path_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub output: PathBuf,
    /// Programs in it.
    pub programs: usize,
    /// Their files.
    pub files: usize,
    /// Programs that no package installed, or without a file of a package.
    pub left_out: usize,
    /// Is it signed?
    pub is_signed: bool,
}

/// `prefetch import`.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Import {
    /// Who signed the file.
    pub signed_by: Option<String>,
    /// Programs that are known from now on.
    pub imported: Vec<String>,
    /// Programs that this machine knew; they stay as they were.
    pub known: usize,
    /// Programs that are not here, or in another version.
    pub other_version: usize,
}

fn path_or_none<S: serde::Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => eke_model::path_text::serialize(path, to),
        None => to.serialize_none(),
    }
}

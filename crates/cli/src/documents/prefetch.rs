//! What `prefetch ... --json` prints. A path that is not UTF-8 is an array of its bytes.

use std::path::PathBuf;

use eke_model::units::Bytes;
use serde::Serialize;

/// `prefetch list`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct List {
    /// The file that has it.
    #[serde(with = "eke_cache_mounts::path_text")]
    #[schemars(with = "String")]
    pub store: PathBuf,
    /// Its size; none: nothing was learned yet.
    pub bytes: Option<Bytes>,
    /// The weightiest first.
    pub programs: Vec<Program>,
}

/// A program whose files are known.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Program {
    /// What is executed.
    #[serde(with = "eke_cache_mounts::path_text")]
    #[schemars(with = "String")]
    pub exe: PathBuf,
    /// The script that it runs, as an array of bytes if it is not UTF-8.
    #[serde(serialize_with = "path_or_none")]
    #[schemars(with = "Option<String>")]
    pub script: Option<PathBuf>,
    /// Launches that were seen.
    pub launches: u32,
    /// Launches of which the files were learned.
    pub learned: u32,
    /// When it was started last, in seconds since 1970.
    pub last_seen_s: i64,
    /// How long the launch took, in milliseconds, that was learned last.
    pub took_ms: u64,
    /// What that launch had to read.
    pub cold: Bytes,
    /// How long the launch took, in milliseconds, that had to read most.
    pub coldest_took_ms: u64,
    /// What that one had to read.
    pub coldest: Bytes,
    /// Its launches, each fading with a half-life of 30 days.
    pub weight: f64,
}

/// `prefetch show`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Show {
    /// The program.
    pub program: Program,
    /// What all its files' pages come to.
    pub bytes: Bytes,
    /// In order of first use.
    pub files: Vec<File>,
}

/// What a program uses of a file.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct File {
    /// Where it is.
    #[serde(with = "eke_cache_mounts::path_text")]
    #[schemars(with = "String")]
    pub path: PathBuf,
    /// What it is.
    pub kind: FileKind,
    /// What its pages come to.
    pub bytes: Bytes,
    /// Pieces of the file that are apart.
    pub pieces: usize,
    /// The share of launches, of late, that used it.
    pub weight: f32,
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
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
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Forget {
    /// The program that is forgotten.
    pub forgotten: Program,
}

/// `prefetch explain`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Explain {
    /// The latest first.
    pub decisions: Vec<Decision>,
}

/// What became of a program's files, and why.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Decision {
    /// When, in seconds since 1970.
    pub at_s: i64,
    /// The program, as text; its number where the program is no longer known.
    pub program: String,
    /// For what: `ahead` of a start, at its `exec`, or since a `session` began.
    pub occasion: String,
    /// How probable its start was held to be.
    pub probability: f64,
    /// Was anything read?
    pub chosen: bool,
    /// What and why, with figures.
    pub why: String,
    /// Of what was read, what the program asked for; none: not known.
    pub used: Option<Bytes>,
    /// Of what was read, what nobody asked for; none: not known.
    pub wasted: Option<Bytes>,
}

/// `prefetch trace`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Trace {
    /// The file.
    #[serde(with = "eke_cache_mounts::path_text")]
    #[schemars(with = "String")]
    pub output: PathBuf,
    /// Are names hashes?
    pub hashed: bool,
    /// Sessions, starts and stops in it.
    pub events: usize,
    /// Programs whose files are in it.
    pub programs: usize,
    /// Pieces of files in it.
    pub maps: usize,
}

fn path_or_none<S: serde::Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => eke_cache_mounts::path_text::serialize(path, to),
        None => to.serialize_none(),
    }
}

//! The files, and eke's mount over them.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use eke_apply::state::make_dir;
use eke_bench_core::Environment;
use eke_bench_core::fault::on;
use eke_model::units::{Bytes, MIB};
use serde_json::Value;
use tempfile::TempDir;

use super::{Error, Options, Source};
use crate::cache_mount::CacheMount;
use crate::store::corpus::Corpus;

/// The size of a file.
const FILE: u64 = 16 * MIB;
/// The least bytes of a corpus.
const LEAST: usize = 64 << 10;

/// A directory of files with a mount over it. Drop unmounts and removes it.
pub struct MountedFiles<'e> {
    pub(super) environment: &'e Environment<'e>,
    names: Vec<String>,
    mount: Option<CacheMount>,
    dir: TempDir,
}

impl<'e> MountedFiles<'e> {
    /// Writes the files, mounts over them, and reads them through the mount, so that the store has them.
    pub(super) fn make(environment: &'e Environment<'e>, options: &Options) -> Result<Self, Error> {
        let corpus = match &options.corpus {
            Some(dir) => Corpus::of(dir, LEAST, options.size),
            None => Corpus::of_machine(LEAST, options.size),
        }?;
        let dir = TempDir::with_prefix_in("eke-bench-", &options.dir)
            .map_err(on("make a directory in", &options.dir))?;
        let mut files = Self { environment, names: Vec::new(), mount: None, dir };
        for part in ["files", "mount"] {
            let dir = files.dir.path().join(part);
            make_dir(environment.root, &dir, 0o755).map_err(on("make", &dir))?;
        }
        files.write(&corpus, options.size)?;
        files.mount(options.size)?;
        Ok(files)
    }

    /// Writes files of `size` bytes in total from the corpus, repeated as needed.
    fn write(&mut self, corpus: &Corpus, size: Bytes) -> Result<(), Error> {
        let mut bytes = corpus.bytes.iter().copied().cycle();
        for number in 0..size.0.div_ceil(FILE).max(2) {
            let name = format!("{number:04}");
            let path = self.dir.path().join("files").join(&name);
            let content: Vec<u8> = bytes.by_ref().take(FILE as usize).collect();
            let mut file =
                OpenOptions::new().write(true).create_new(true).open(&path).map_err(on("make", &path))?;
            file.write_all(&content).and_then(|()| file.sync_all()).map_err(on("write", &path))?;
            self.names.push(name);
        }
        Ok(())
    }

    /// Mounts with memory for all files and without passthrough, so that all reads go through the store.
    fn mount(&mut self, size: Bytes) -> Result<(), Error> {
        let memory = format!("--memory={}", size.0 + 64 * MIB);
        let (dir, place) = (self.dir.path().join("files"), self.dir.path().join("mount"));
        let options = [&memory, "--passthrough=never", "--compress=sync"];
        self.mount = Some(CacheMount::new(self.environment, &dir, place, &options)?);
        for path in self.files(Source::Mount) {
            std::fs::read(&path).map_err(on("read", &path))?;
        }
        Ok(())
    }

    /// The paths of the files for a source.
    pub(super) fn files(&self, source: Source) -> Vec<PathBuf> {
        let part = if matches!(source, Source::Store | Source::Mount) { "mount" } else { "files" };
        self.names.iter().map(|name| self.dir.path().join(part).join(name)).collect()
    }

    /// Notes with the store's own counters.
    pub(super) fn notes(&self, options: &Options) -> Vec<String> {
        let details = self.mount.as_ref().and_then(CacheMount::details);
        let store = details.as_ref().and_then(|details| details.pointer("/worker/store"));
        let counter = |name| store.and_then(|s| s.get(name)).and_then(Value::as_u64).unwrap_or(0);
        vec![
            format!(
                "{} in files of 16 MiB in {}. The store has {} blocks compressed by LZ4, {} recompressed by zstd and {} uncompressed, {} in {} of memory; {} of {} block reads were hits.",
                options.size, options.dir.display(), counter("fast"), counter("recompressed"), counter("uncompressed"),
                Bytes(counter("raw")), Bytes(counter("held")), counter("hits"), counter("hits") + counter("misses"),
            ),
            "Every read is checked for its length. Idle processors recompress blocks that were read twice with zstd, so a long run has more of them; with sync, blocks are in the store before the first reply.".into(),
        ]
    }

    /// Unmounts as a user does.
    pub(super) fn teardown(mut self) -> Result<(), Error> {
        Ok(self.mount.take().map_or(Ok(()), CacheMount::unmount)?)
    }
}

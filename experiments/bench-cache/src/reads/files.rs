//! The files, and eke's mount over them.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use eke_apply::state::make_dir;
use eke_bench_core::Environment;
use eke_model::units::{Bytes, MIB};
use serde_json::Value;
use tempfile::TempDir;

use super::{Error, Options, Source, on};
use crate::store::corpus::Corpus;

/// The program that mounts eke's cache.
const EKE: &str = "eke";
/// The size of a file.
const FILE: u64 = 16 * MIB;
/// The least bytes of a corpus.
const LEAST: usize = 64 << 10;

/// A directory of files with a mount over it. Drop unmounts and removes it.
pub struct MountedFiles<'e> {
    pub(super) environment: &'e Environment<'e>,
    dir: TempDir,
    program: PathBuf,
    names: Vec<String>,
    mounted: bool,
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
        let program = environment.installed(EKE);
        let mut files = Self { environment, dir, program, names: Vec::new(), mounted: false };
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
        let mut command = self.eke("mount");
        command.arg(self.dir.path().join("files")).arg(self.dir.path().join("mount"));
        output(command.args([&memory, "--passthrough=never", "--compress=sync"]))?;
        self.mounted = true;
        for path in self.files(Source::Mount) {
            std::fs::read(&path).map_err(on("read", &path))?;
        }
        Ok(())
    }

    fn eke(&self, verb: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["cache", verb]);
        command
    }

    /// The paths of the files for a source.
    pub(super) fn files(&self, source: Source) -> Vec<PathBuf> {
        let part = if matches!(source, Source::Store | Source::Mount) { "mount" } else { "files" };
        self.names.iter().map(|name| self.dir.path().join(part).join(name)).collect()
    }

    /// Notes with the store's own counters.
    pub(super) fn notes(&self, options: &Options) -> Vec<String> {
        let mut command = self.eke("status");
        command.arg(self.dir.path().join("mount")).arg("--json");
        let status = output(&mut command).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
        let store = status.as_ref().and_then(|status| status.pointer("/caches/0/details/worker/store"));
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
        self.mounted = false;
        let mount = self.dir.path().join("mount");
        output(self.eke("umount").arg(mount)).map(drop)
    }
}

impl Drop for MountedFiles<'_> {
    fn drop(&mut self) {
        if self.mounted {
            let mount = self.dir.path().join("mount");
            let _ = output(self.eke("umount").arg("--lazy").arg(mount));
        }
    }
}

/// Runs a command and returns its standard output.
fn output(command: &mut Command) -> Result<Vec<u8>, Error> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let line = words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let failed = |why: String| Error::Cache { command: line.clone(), why };
    let output = command.output().map_err(|e| failed(format!("cannot be run: {e}")))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(failed(format!("failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim())))
}

//! The content of the blocks: the user's files, or files of this machine.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use eke_cache_store::codec::{Codec, Compressed, Lz4};
use eke_model::units::Bytes;

use super::Error;

/// The directories for files of this machine: documents, libraries and programs, data. Each gives an equal share.
const DIRECTORIES: [&str; 3] = ["/usr/share/doc", "/usr/lib", "/usr/share"];
/// The most bytes of one file of this machine, so that a few large files do not fill the corpus.
const OF_ONE_FILE: u64 = 4 << 20;
/// The deepest nesting of directories.
const DEPTH: usize = 24;

/// The bytes of files, one file after another.
#[derive(Debug, Clone)]
pub struct Corpus {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The number of files.
    pub files: usize,
    /// The files' origin, for the report.
    pub origin: String,
}

impl Corpus {
    /// Reads files below `dir` in the order of their names, at most `most` bytes.
    ///
    /// # Errors
    /// The directory cannot be read, or its files have less than `least` bytes.
    pub fn of(dir: &Path, least: usize, most: Bytes) -> Result<Self, Error> {
        let unreadable = |source| Error::Corpus { path: dir.to_owned(), source };
        std::fs::read_dir(dir).map_err(unreadable)?;
        let mut corpus = Self { bytes: Vec::new(), files: 0, origin: "the given directory".into() };
        corpus.add_below(dir, (most.0, u64::MAX), DEPTH);
        corpus.enough(least, dir)
    }

    /// Reads files of this machine.
    ///
    /// # Errors
    /// They have less than `least` bytes.
    pub fn of_machine(least: usize, most: Bytes) -> Result<Self, Error> {
        let mut corpus = Self { bytes: Vec::new(), files: 0, origin: DIRECTORIES.join(", ") };
        for (dir, number) in DIRECTORIES.iter().zip(1..) {
            let until = most.0 * number / DIRECTORIES.len() as u64;
            corpus.add_below(Path::new(dir), (until, OF_ONE_FILE), DEPTH);
        }
        corpus.enough(least, Path::new(DIRECTORIES[2]))
    }

    fn enough(self, least: usize, dir: &Path) -> Result<Self, Error> {
        if self.bytes.len() < least {
            let (found, least) = (Bytes(self.bytes.len() as u64), Bytes(least as u64));
            return Err(Error::TooLittle { path: dir.to_owned(), found, least });
        }
        Ok(self)
    }

    /// Adds files below `dir` up to `until` bytes in total, at most `each` bytes of one file. Skips unreadable files.
    fn add_below(&mut self, dir: &Path, (until, each): (u64, u64), depth: usize) {
        let mut entries: Vec<PathBuf> =
            std::fs::read_dir(dir).into_iter().flatten().filter_map(|e| Some(e.ok()?.path())).collect();
        entries.sort();
        for path in entries {
            let left = until.saturating_sub(self.bytes.len() as u64);
            match path.symlink_metadata() {
                _ if left == 0 => return,
                Ok(found) if found.is_dir() && depth > 0 => self.add_below(&path, (until, each), depth - 1),
                Ok(found) if found.is_file() && found.len() > 0 => {
                    self.files += usize::from(self.add(&path, left.min(each)).is_ok());
                }
                _ => {}
            }
        }
    }

    fn add(&mut self, path: &Path, most: u64) -> io::Result<()> {
        File::open(path)?.take(most).read_to_end(&mut self.bytes).map(|_| ())
    }
}

/// The blocks of a corpus that compress, uncompressed and compressed.
pub(super) struct Blocks<'c> {
    /// The size of a block in bytes.
    pub size: usize,
    pub raw: Vec<&'c [u8]>,
    pub compressed: Vec<Box<[u8]>>,
    /// How many blocks were left out because they do not compress.
    pub left_out: usize,
}

impl<'c> Blocks<'c> {
    /// Cuts the corpus into blocks. Leaves out an incomplete last block.
    ///
    /// # Errors
    /// There is no memory, or no block compresses.
    pub fn cut(corpus: &'c Corpus, size: usize) -> Result<Self, Error> {
        let (mut raw, mut all, mut left_out) = (Vec::new(), Vec::new(), 0);
        let mut engine = Lz4.engine().map_err(Error::of_cache)?;
        let mut compressed = Compressed::with_room(Lz4.bound(size), 1).map_err(Error::of_cache)?;
        for block in corpus.bytes.chunks_exact(size) {
            compressed.clear();
            engine.compress_batch(&[block], &mut compressed);
            match compressed.get(0).filter(|c| is_worth_keeping(size, c.len())) {
                Some(compressed) => {
                    raw.push(block);
                    all.push(compressed.into());
                }
                None => left_out += 1,
            }
        }
        if raw.is_empty() {
            Err(Error::NothingCompresses)
        } else {
            Ok(Self { size, raw, compressed: all, left_out })
        }
    }

    /// The total compressed bytes.
    pub fn compressed_bytes(&self) -> u64 {
        self.compressed.iter().map(|c| c.len() as u64).sum()
    }

    /// The compression ratio.
    pub fn ratio(&self) -> f64 {
        (self.raw.len() * self.size) as f64 / self.compressed_bytes().max(1) as f64
    }
}

/// The store's own rule: compression must save at least an eighth.
pub(super) const fn is_worth_keeping(raw: usize, compressed: usize) -> bool {
    compressed <= raw - raw / 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use eke_testkit::tree;

    const LEAST: usize = 64 << 10;

    #[test]
    fn files_are_read_in_order_up_to_the_most() {
        let dir = tempfile::tempdir().unwrap();
        tree::put(dir.path(), "b/two", &"b".repeat(70_000));
        tree::put(dir.path(), "a", &"a".repeat(10));
        std::os::unix::fs::symlink("/etc", dir.path().join("c")).unwrap();
        let corpus = Corpus::of(dir.path(), LEAST, Bytes(70_000)).unwrap();
        assert_eq!((corpus.files, corpus.bytes.len()), (2, 70_000));
        assert_eq!((&corpus.bytes[..10], corpus.bytes[10]), (&[b'a'; 10][..], b'b'));
    }

    #[test]
    fn too_few_bytes_and_a_missing_directory_are_different_errors() {
        let dir = tempfile::tempdir().unwrap();
        tree::put(dir.path(), "a", "little");
        let error = Corpus::of(dir.path(), LEAST, Bytes::mib(1)).unwrap_err().to_string();
        assert!(error.contains("6 B") && error.contains("64 KiB"), "{error}");
        let error = Corpus::of(&dir.path().join("gone"), LEAST, Bytes::mib(1)).unwrap_err().to_string();
        assert!(error.contains("gone") && error.contains("No such file"), "{error}");
    }

    #[test]
    fn incompressible_blocks_are_left_out() {
        let mut state = 1;
        let mut bytes: Vec<u8> =
            (0..LEAST).map(|_| eke_cache_replay::next_random(&mut state) as u8).collect();
        bytes.resize(3 * LEAST + 5, b'x');
        let corpus = Corpus { bytes, files: 1, origin: String::new() };
        let blocks = Blocks::cut(&corpus, LEAST).unwrap();
        assert_eq!((blocks.raw.len(), blocks.compressed.len(), blocks.left_out), (2, 2, 1));
        assert!(blocks.ratio() > 100.0);
        let noise = Corpus { bytes: corpus.bytes[..LEAST].to_vec(), ..corpus.clone() };
        assert!(matches!(Blocks::cut(&noise, LEAST), Err(Error::NothingCompresses)));
    }
}

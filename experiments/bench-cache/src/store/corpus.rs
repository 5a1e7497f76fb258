//! What the blocks are filled with: files of the user's, or of this machine.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use eke_cache_store::codec::{Codec, Compressed, Lz4};
use eke_model::units::Bytes;

use super::Error;

/// Where files of this machine are taken from, each an equal share: documents, libraries and programs, data.
const PLACES: [&str; 3] = ["/usr/share/doc", "/usr/lib", "/usr/share"];
/// Of one file of this machine, so that a few large ones are not all there is.
const OF_ONE_FILE: u64 = 4 << 20;
/// Directories below directories; deeper ones are not looked into.
const DEPTH: usize = 24;

/// Files' bytes, one file after another.
#[derive(Debug, Clone)]
pub struct Corpus {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// How many files they are of.
    pub files: usize,
    /// Where they are from, in words.
    pub place: String,
}

impl Corpus {
    /// Files below `dir`, by name, until there are `most` bytes.
    ///
    /// # Errors
    /// The directory cannot be read, or its files have less than `least` bytes.
    pub fn of(dir: &Path, least: usize, most: Bytes) -> Result<Self, Error> {
        let unreadable = |source| Error::Corpus { path: dir.to_owned(), source };
        std::fs::read_dir(dir).map_err(unreadable)?;
        let mut corpus = Self { bytes: Vec::new(), files: 0, place: "the directory that was given".into() };
        corpus.add_below(dir, (most.0, u64::MAX), DEPTH);
        corpus.enough(least, dir)
    }

    /// Files of this machine.
    ///
    /// # Errors
    /// There are less than `least` bytes.
    pub fn of_machine(least: usize, most: Bytes) -> Result<Self, Error> {
        let mut corpus = Self { bytes: Vec::new(), files: 0, place: PLACES.join(", ") };
        for (place, number) in PLACES.iter().zip(1..) {
            let until = most.0 * number / PLACES.len() as u64;
            corpus.add_below(Path::new(place), (until, OF_ONE_FILE), DEPTH);
        }
        corpus.enough(least, Path::new(PLACES[2]))
    }

    fn enough(self, least: usize, dir: &Path) -> Result<Self, Error> {
        if self.bytes.len() < least {
            let (found, least) = (Bytes(self.bytes.len() as u64), Bytes(least as u64));
            return Err(Error::TooLittle { path: dir.to_owned(), found, least });
        }
        Ok(self)
    }

    /// Until there are `until` bytes in all; `each` at most of one file. What cannot be read is passed over.
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

/// The blocks of a corpus that compress, as they are and packed.
pub(super) struct Blocks<'c> {
    /// Bytes of each.
    pub size: usize,
    pub raw: Vec<&'c [u8]>,
    pub packed: Vec<Box<[u8]>>,
    /// Blocks that were left out: they do not compress.
    pub left_out: usize,
}

impl<'c> Blocks<'c> {
    /// Cuts the corpus; its last bytes may be left.
    ///
    /// # Errors
    /// There is no memory, or nothing compresses.
    pub fn cut(corpus: &'c Corpus, size: usize) -> Result<Self, Error> {
        let (mut raw, mut all, mut left_out) = (Vec::new(), Vec::new(), 0);
        let mut engine = Lz4.engine().map_err(Error::of_cache)?;
        let mut packed = Compressed::with_room(Lz4.bound(size), 1).map_err(Error::of_cache)?;
        for block in corpus.bytes.chunks_exact(size) {
            packed.clear();
            engine.compress_batch(&[block], &mut packed);
            match packed.get(0).filter(|packed| pays(size, packed.len())) {
                Some(packed) => {
                    raw.push(block);
                    all.push(packed.into());
                }
                None => left_out += 1,
            }
        }
        if raw.is_empty() {
            Err(Error::NothingCompresses)
        } else {
            Ok(Self { size, raw, packed: all, left_out })
        }
    }

    /// What they are packed to.
    pub fn packed_bytes(&self) -> u64 {
        self.packed.iter().map(|p| p.len() as u64).sum()
    }

    /// Bytes by byte packed.
    pub fn ratio(&self) -> f64 {
        (self.raw.len() * self.size) as f64 / self.packed_bytes().max(1) as f64
    }
}

/// The store's own line: an eighth must be saved.
pub(super) const fn pays(raw: usize, packed: usize) -> bool {
    packed <= raw - raw / 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use eke_testkit::tree;

    const LEAST: usize = 64 << 10;

    #[test]
    fn files_are_read_in_order_up_to_the_most() {
        let place = tempfile::tempdir().unwrap();
        tree::put(place.path(), "b/two", &"b".repeat(70_000));
        tree::put(place.path(), "a", &"a".repeat(10));
        std::os::unix::fs::symlink("/etc", place.path().join("c")).unwrap();
        let corpus = Corpus::of(place.path(), LEAST, Bytes(70_000)).unwrap();
        assert_eq!((corpus.files, corpus.bytes.len()), (2, 70_000));
        assert_eq!((&corpus.bytes[..10], corpus.bytes[10]), (&[b'a'; 10][..], b'b'));
    }

    #[test]
    fn too_little_and_nothing_are_told_apart() {
        let place = tempfile::tempdir().unwrap();
        tree::put(place.path(), "a", "little");
        let said = Corpus::of(place.path(), LEAST, Bytes::mib(1)).unwrap_err().to_string();
        assert!(said.contains("6 B") && said.contains("64 KiB"), "{said}");
        let said = Corpus::of(&place.path().join("gone"), LEAST, Bytes::mib(1)).unwrap_err().to_string();
        assert!(said.contains("gone") && said.contains("No such file"), "{said}");
    }

    #[test]
    fn what_does_not_compress_is_left_out() {
        let mut state = 1;
        let mut bytes: Vec<u8> =
            (0..LEAST).map(|_| eke_cache_replay::next_random(&mut state) as u8).collect();
        bytes.resize(3 * LEAST + 5, b'x');
        let corpus = Corpus { bytes, files: 1, place: String::new() };
        let blocks = Blocks::cut(&corpus, LEAST).unwrap();
        assert_eq!((blocks.raw.len(), blocks.packed.len(), blocks.left_out), (2, 2, 1));
        assert!(blocks.ratio() > 100.0);
        let noise = Corpus { bytes: corpus.bytes[..LEAST].to_vec(), ..corpus.clone() };
        assert!(matches!(Blocks::cut(&noise, LEAST), Err(Error::NothingCompresses)));
    }
}

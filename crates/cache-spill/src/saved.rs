//! What outlives an unmount, as bytes: where the blocks are, and of which version of each file they are.
//!
//! All numbers are little-endian. `ekespil1`, six words (see [`Saved`]), three counts, the slots, the files, the blocks, and the checksum
//! of all that. A file of another version of eke, or one that is damaged anywhere, is no index.

use eke_cache_store::{FileId, Key};
use twox_hash::XxHash3_64;

use crate::place::Place;
use crate::record::HEAD;
use crate::{SEGMENT, record};

const MAGIC: [u8; 8] = *b"ekespil1";
const WORDS: usize = 6;
const COUNTS: usize = 3;
/// Bytes of a file and of a block.
const FILE: usize = 40;
const BLOCK: usize = 32;

/// A file that has blocks, and which version of it they are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavedFile {
    /// Its number in the store: that of its inode.
    pub file: u64,
    /// In bytes.
    pub size: u64,
    /// Modification, change and birth, in nanoseconds since 1970.
    pub times_ns: [i64; 3],
}

/// What outlives an unmount.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Saved {
    /// The backing directory: its file system's id, its inode and its birth.
    pub backing: [u64; 3],
    /// The size of a block, in bytes.
    pub block_size: u64,
    /// The machine's boot, hashed.
    pub boot: u64,
    /// When it was saved, in seconds since 1970.
    pub saved_s: u64,
    /// The number of the next segment.
    pub next: u64,
    /// The slots of the segments, the oldest first.
    pub slots: Vec<u32>,
    /// The files, by number.
    pub files: Vec<SavedFile>,
    /// The blocks, in the order in which they were written.
    pub blocks: Vec<(Key, Place)>,
}

/// The bytes of an index with so many segments, files and blocks.
pub fn length(segments: usize, files: usize, blocks: usize) -> usize {
    MAGIC.len() + (WORDS + 1 + COUNTS + 1) * 8 + segments * 4 + files * FILE + blocks * BLOCK
}

impl Saved {
    /// As bytes. `None`: there is no memory for them.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        out.try_reserve_exact(length(self.slots.len(), self.files.len(), self.blocks.len())).ok()?;
        out.extend(MAGIC);
        let [fs, inode, born] = self.backing;
        let counts = [self.slots.len(), self.files.len(), self.blocks.len()].map(|count| count as u64);
        let words = [fs, inode, born, self.block_size, self.boot, self.saved_s, self.next];
        words.into_iter().chain(counts).for_each(|word| out.extend(word.to_le_bytes()));
        self.slots.iter().for_each(|slot| out.extend(slot.to_le_bytes()));
        for file in &self.files {
            out.extend(file.file.to_le_bytes());
            out.extend(file.size.to_le_bytes());
            file.times_ns.iter().for_each(|time| out.extend(time.to_le_bytes()));
        }
        for (key, place) in &self.blocks {
            [key.file.0, key.block, place.segment].iter().for_each(|word| out.extend(word.to_le_bytes()));
            [place.offset, place.len].iter().for_each(|word| out.extend(word.to_le_bytes()));
        }
        Some(sealed(out))
    }

    /// From bytes. `None`: they are no index, damaged, or contradict themselves.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (body, sum) = bytes.split_at_checked(bytes.len().checked_sub(8)?)?;
        if XxHash3_64::oneshot(body).to_le_bytes() != *sum {
            return None;
        }
        let mut rest = body.strip_prefix(&MAGIC)?;
        let mut words = [0; WORDS + 1 + COUNTS];
        for word in &mut words {
            *word = take_word(&mut rest)?;
        }
        let [fs, inode, born, block_size, boot, saved_s, next, slots, files, blocks] = words;
        let [slots, files, blocks] = lengths([slots, files, blocks], rest.len())?;
        let (slots, rest) = rest.split_at_checked(slots)?;
        let (files, blocks) = rest.split_at_checked(files).filter(|(_, rest)| rest.len() == blocks)?;
        let saved = Self {
            backing: [fs, inode, born],
            block_size,
            boot,
            saved_s,
            next,
            slots: collect(slots, 4, |slot| Some(u32::from_le_bytes(slot.try_into().ok()?)))?,
            files: collect(files, FILE, file)?,
            blocks: collect(blocks, BLOCK, block)?,
        };
        saved.agrees().then_some(saved)
    }

    /// True if segments, files and blocks can be of one index.
    fn agrees(&self) -> bool {
        let Some(oldest) = self.next.checked_sub(self.slots.len() as u64) else { return false };
        let ordered = self.blocks.windows(2).all(|pair| pair[0].1.segment <= pair[1].1.segment);
        let placed = self.blocks.iter().all(|(_, place)| {
            let end = u64::from(place.offset) + u64::from(place.len);
            (oldest..self.next).contains(&place.segment)
                && place.len as usize >= HEAD
                && end <= SEGMENT as u64
        });
        ordered && placed && self.files.windows(2).all(|pair| pair[0].file < pair[1].file)
    }
}

/// The bytes with their checksum. For tests, too.
pub fn sealed(mut body: Vec<u8>) -> Vec<u8> {
    let sum = XxHash3_64::oneshot(&body);
    body.extend(sum.to_le_bytes());
    body
}

/// The bytes of each part, if they are `all` together.
fn lengths(counts: [u64; COUNTS], all: usize) -> Option<[usize; COUNTS]> {
    let sizes = [4, FILE, BLOCK];
    let mut lengths = [0; COUNTS];
    for ((length, count), size) in lengths.iter_mut().zip(counts).zip(sizes) {
        *length = usize::try_from(count).ok()?.checked_mul(size)?;
    }
    let sum = lengths.iter().try_fold(0_usize, |sum, length| sum.checked_add(*length))?;
    (sum == all).then_some(lengths)
}

fn take_word(rest: &mut &[u8]) -> Option<u64> {
    let (word, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u64::from_le_bytes(*word))
}

/// One value for each `size` bytes. `None`: one is wrong, or there is no memory.
fn collect<T>(bytes: &[u8], size: usize, parse: impl Fn(&[u8]) -> Option<T>) -> Option<Vec<T>> {
    let mut all = Vec::new();
    all.try_reserve_exact(bytes.len() / size).ok()?;
    for one in bytes.chunks_exact(size) {
        all.push(parse(one)?);
    }
    Some(all)
}

fn file(mut bytes: &[u8]) -> Option<SavedFile> {
    let bytes = &mut bytes;
    let (file, size) = (take_word(bytes)?, take_word(bytes)?);
    let mut time = || Some(i64::from_le_bytes(take_word(bytes)?.to_le_bytes()));
    Some(SavedFile { file, size, times_ns: [time()?, time()?, time()?] })
}

fn block(mut bytes: &[u8]) -> Option<(Key, Place)> {
    let bytes = &mut bytes;
    let (file, block, segment, ends) =
        (take_word(bytes)?, take_word(bytes)?, take_word(bytes)?, take_word(bytes)?);
    let place = Place { segment, offset: ends as u32, len: (ends >> 32) as u32 };
    Some((Key::new(FileId(file), block), place))
}

const _: () = assert!(record::HEAD < SEGMENT && SEGMENT < u32::MAX as usize);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn example() -> Saved {
        let place = |segment, offset| Place { segment, offset, len: 100 };
        let key = |file, block| Key::new(FileId(file), block);
        Saved {
            backing: [1, 2, 3],
            block_size: 65_536,
            boot: 4,
            saved_s: 1_700_000_000,
            next: 12,
            slots: vec![1, 2, 0],
            files: vec![
                SavedFile { file: 7, size: 70_000, times_ns: [-1, 5, 6] },
                SavedFile { file: 9, size: 1, times_ns: [i64::MIN, i64::MAX, 0] },
            ],
            blocks: vec![(key(9, 0), place(9, 0)), (key(7, 1), place(9, 100)), (key(7, 0), place(11, 5))],
        }
    }

    #[test]
    fn an_index_comes_back() {
        for saved in [example(), Saved::default()] {
            let bytes = saved.bytes().unwrap();
            assert_eq!(bytes.len(), length(saved.slots.len(), saved.files.len(), saved.blocks.len()));
            assert_eq!(Saved::parse(&bytes), Some(saved));
        }
    }

    #[test]
    fn no_flipped_bit_and_no_missing_end_is_believed() {
        let bytes = example().bytes().unwrap();
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            assert_eq!(Saved::parse(&flipped), None, "{at}");
            assert_eq!(Saved::parse(&bytes[..at]), None, "{at}");
        }
    }

    #[test]
    fn an_index_that_contradicts_itself_is_refused() {
        let wrong: [fn(&mut Saved); 7] = [
            |saved| saved.next = 2,
            |saved| saved.blocks[0].1.segment = 8,
            |saved| saved.blocks[2].1.segment = 12,
            |saved| saved.blocks.swap(0, 2),
            |saved| saved.blocks[0].1.len = HEAD as u32 - 1,
            |saved| saved.blocks[0].1 = Place { segment: 9, offset: u32::MAX, len: u32::MAX },
            |saved| saved.files.swap(0, 1),
        ];
        for (nth, change) in wrong.iter().enumerate() {
            let mut saved = example();
            change(&mut saved);
            assert_eq!(Saved::parse(&saved.bytes().unwrap()), None, "{nth}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_index_or_none(mut bytes in prop::collection::vec(any::<u8>(), 0..300), counts in prop::array::uniform3(0..4_u64)) {
            bytes.splice(..0, MAGIC.into_iter().chain([0; 56]).chain(counts.iter().flat_map(|count| count.to_le_bytes())));
            prop_assert_eq!(Saved::parse(&bytes), None);
            if let Some(saved) = Saved::parse(&sealed(bytes.clone())) {
                prop_assert_eq!(saved.bytes().unwrap(), sealed(bytes));
            }
        }
    }
}

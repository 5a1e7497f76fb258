//! What a spill has on its disk: the index, blocks, and the page of the day.

use std::io;

use eke_cache_spill::day::Day;
use eke_cache_spill::saved::sealed;
use eke_cache_spill::{Medium, Room, SEGMENT, Saved, SavedFile, Spill, SpillOptions, record};
use eke_model::units::Bytes;

/// A disk with these bytes over and over.
#[derive(Debug)]
struct Same(Vec<u8>);

impl Medium for Same {
    fn read(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        let len = self.0.len().max(1) as u64;
        let byte = |at: u64| self.0.get((at % len) as usize).copied().unwrap_or_default();
        out.iter_mut().zip(offset..).for_each(|(out, at)| *out = byte(at));
        Ok(())
    }

    fn write(&self, _: &[u8], _: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn room(&self) -> io::Result<Room> {
        Ok(Room { free: Bytes(1 << 40), all: Bytes(1 << 40) })
    }
}

/// An index is read as it was written, and no block is served whose bytes are not its own.
pub fn spill(data: &[u8]) {
    let _ = Day::parse(data);
    if let Some((_, block)) = record::parse(data) {
        assert!(block.is_whole() && block.compressed.len() + record::HEAD == data.len());
    }
    let bytes = sealed(data.to_vec());
    let Some(saved) = Saved::parse(data).or_else(|| Saved::parse(&bytes)) else { return };
    let again = saved.bytes().expect("there is memory");
    assert_eq!(Saved::parse(&again).as_ref(), Some(&saved));
    let options = SpillOptions { size: Bytes(64 * SEGMENT as u64), day: Bytes(1 << 40), blocks: 1000 };
    let spill = Spill::new(Box::new(Same(data.to_vec())), options, Some(&saved), Box::new(|| 1_700_000_000));
    let (mut buffer, there) = (Vec::new(), spill.stats().blocks);
    for (key, _) in saved.blocks.iter().take(100) {
        if let Some(spilled) = spill.read(*key, &mut buffer) {
            assert!(spilled.block.key == *key && spilled.block.is_whole());
        }
    }
    assert!(spill.stats().blocks + spill.stats().corrupted + spill.stats().errors >= there);
    let file = |file| SavedFile { file, size: 0, times_ns: [0; 3] };
    let mut next = Saved { files: spill.files().into_iter().map(file).collect(), ..Saved::default() };
    assert!(spill.save(&mut next) && next.blocks.len() as u64 == spill.stats().blocks);
    assert_eq!(Saved::parse(&next.bytes().expect("there is memory")), Some(next));
}

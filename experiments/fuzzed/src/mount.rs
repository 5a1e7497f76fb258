//! Messages of the kernel to a mount's processes, and the log that a worker leaves for the next one.

use std::io;
use std::path::Component;
use std::sync::Mutex;

use eke_cache_serve::init::bytes::{decode, encode_reply, encode_request};
use eke_cache_serve::init::{Offer, grant};
use eke_cache_serve::ledger::record::{self, seal};
use eke_cache_serve::ledger::{Log, Medium, OwnedEntry};
use eke_cache_serve::warm::choose::{MOST_BYTES, fill};
use eke_cache_serve::warm::list::{self, HotList};
use eke_cachefs::watch::events::events;
use eke_model::units::PageSize;

use crate::input::Input;

/// `FUSE_INIT`: a session grants only offered flags, and can read its own grant.
pub fn fuse_init(data: &[u8]) {
    let mut input = Input(data);
    let (is_root, wanted) = (input.u8() == 0, input.u64());
    let Ok(offer) = decode(input.0) else { return };
    let Ok(grant) = grant(&offer, wanted, is_root, PageSize::SMALLEST) else { return };
    assert_eq!(grant.flags & !offer.flags, 0, "the session grants more than was offered");
    assert_eq!(encode_reply(offer.unique, &grant)[8..16], offer.unique.to_ne_bytes());
    let again = decode(&encode_request(&grant)).expect("the encoded request is an offer");
    let Offer { minor, max_readahead, flags, .. } = again;
    // The bit for flags from 32 on is always set.
    let extended = 1 << 30;
    assert_eq!(
        (minor, max_readahead, flags | extended),
        (grant.minor, grant.max_readahead, grant.flags | extended)
    );
}

/// The list of what was hot: its parts are inside the directory, in order, and bounded; a list is read as it was written.
pub fn hot_list(data: &[u8]) {
    let Some(list) = list::parse(&String::from_utf8_lossy(data)) else { return };
    let _ = list.bytes();
    for part in &list.parts {
        assert!(part.heat <= list::HOTTEST && !part.blocks.is_empty());
        assert!(part.path.components().all(|name| matches!(name, Component::Normal(_))));
        assert!(part.blocks.windows(2).all(|two| two[0].end <= two[1].start));
        let last = part.blocks.last().map_or(0, |range| range.end);
        assert!(last.checked_mul(list.block_size).is_some_and(|bytes| bytes <= 1 << 57));
    }
    assert_eq!(list::parse(&list.text()).as_ref(), Some(&list));
    let mut next = HotList { parts: Vec::new(), ..list.clone() };
    fill(&mut next, Vec::new(), |_| None, &list.parts);
    assert!(next.text().len() <= MOST_BYTES + 4 * data.len() + 100);
    assert_eq!(list::parse(&next.text()), Some(next));
}

/// Events of fanotify: a file handle is within the event, and events are finite.
pub fn fanotify(data: &[u8]) {
    let mut count = 0;
    for event in events(data) {
        count += 1;
        let Ok(event) = event else { continue };
        if let Some(handle) = event.handle {
            let bytes = handle.first_chunk().map_or(0, |len| u32::from_ne_bytes(*len));
            assert_eq!(handle.len(), 8 + bytes as usize, "the handle has another length");
        }
    }
    assert!(count <= data.len() / 24 + 1);
}

/// The first pages of a log; the rest is empty.
#[derive(Debug, Default)]
struct Pages(Mutex<[Vec<u8>; 3]>);

/// Start offsets of the log's parts: the headers and the halves.
const PARTS: [u64; 3] = [0, 4096, 1 << 40];

impl Pages {
    fn part(offset: u64) -> (usize, usize) {
        let part = PARTS.iter().rposition(|begin| *begin <= offset).unwrap_or(0);
        (part, (offset - PARTS[part]) as usize)
    }
}

impl Medium for Pages {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (part, at) = Self::part(offset);
        let part = &mut self.0.lock().expect("a lock")[part];
        part.resize(part.len().max(at + bytes.len()), 0);
        part[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let (part, at) = Self::part(offset);
        let part = &self.0.lock().expect("a lock")[part];
        Ok(part.get(at..).unwrap_or_default().iter().take(len).copied().collect())
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        let (part, at) = Self::part(offset);
        let part = &mut self.0.lock().expect("a lock")[part];
        let end = at.saturating_add(len as usize).min(part.len());
        if let Some(hole) = part.get_mut(at..end) {
            hole.fill(0);
        }
        Ok(())
    }

    fn end(&self) -> io::Result<u64> {
        let parts = self.0.lock().expect("a lock");
        let last = parts.iter().zip(PARTS).rfind(|(part, _)| !part.is_empty());
        Ok(last.map_or(0, |(part, begin)| begin + part.len() as u64))
    }
}

/// A log of any bytes, or of records with a valid length and checksum: it is read, continued, and read back.
pub fn ledger(data: &[u8]) {
    let mut input = Input(data);
    let is_sealed = input.u8() == 0;
    let mut half = Vec::new();
    while is_sealed && !input.is_empty() {
        let length = input.u8();
        seal(input.bytes(usize::from(length)), 0, &mut half);
    }
    half.extend(input.0);
    if let Ok(Some((owned, length))) = record::decode(&half, 0) {
        let mut again = Vec::new();
        record::encode(&owned.entry(), 0, &mut again);
        assert!(length <= half.len() && record::decode(&again, 0) == Ok(Some((owned, again.len()))));
    }
    let pages = || Pages(Mutex::new([Vec::new(), half.clone(), Vec::new()]));
    let (log, replay) = Log::open(pages()).expect("bytes in memory");
    let before = replay.nodes.iter().count();
    let new = OwnedEntry::Opened { node: u64::MAX };
    log.append(&new.entry()).expect("bytes in memory");
    let (_, again) = Log::open(log.into_medium()).expect("bytes in memory");
    let mut expected = replay.nodes;
    expected.apply(&new.entry());
    assert_eq!(again.bad_record, None, "records after a fault are read");
    assert_eq!(again.nodes.known(), expected.known());
    assert!(before < again.nodes.iter().count());
}

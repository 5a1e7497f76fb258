//! One entry as bytes: its length and checksum, its kind, its fields.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use thiserror::Error;
use twox_hash::XxHash64;

use eke_cachefs::node::Entry;

/// Bytes of length and checksum.
const HEAD: usize = 8;
/// Bytes of a record of one node's number.
pub(super) const ONE_LEN: usize = HEAD + 1 + size_of::<u64>();
/// Bytes of the longest record. A name has at most 255 bytes, so no record comes near.
const LONGEST: usize = 4096;
const KNOWN: u8 = 1;
const FORGOTTEN: u8 = 2;
const OPENED: u8 = 3;
const RELEASED: u8 = 4;

/// An [`Entry`] that owns its name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of Entry")]
pub enum OwnedEntry {
    /// As in [`Entry`].
    Known { node: u64, parent: u64, name: OsString, dev: u64, ino: u64, born_ns: i128, generation: u64 },
    /// As in [`Entry`].
    Forgotten { node: u64 },
    /// As in [`Entry`].
    Opened { node: u64 },
    /// As in [`Entry`].
    Released { node: u64 },
}

impl OwnedEntry {
    /// The same entry, borrowed.
    pub fn entry(&self) -> Entry<'_> {
        match *self {
            Self::Known { node, parent, ref name, dev, ino, born_ns, generation } => {
                Entry::Known { node, parent, name, dev, ino, born_ns, generation }
            }
            Self::Forgotten { node } => Entry::Forgotten { node },
            Self::Opened { node } => Entry::Opened { node },
            Self::Released { node } => Entry::Released { node },
        }
    }
}

impl From<Entry<'_>> for OwnedEntry {
    fn from(entry: Entry<'_>) -> Self {
        match entry {
            Entry::Known { node, parent, name, dev, ino, born_ns, generation } => {
                Self::Known { node, parent, name: name.to_owned(), dev, ino, born_ns, generation }
            }
            Entry::Forgotten { node } => Self::Forgotten { node },
            Entry::Opened { node } => Self::Opened { node },
            Entry::Released { node } => Self::Released { node },
        }
    }
}

/// Bytes that are no valid record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RecordError {
    /// No record has this length, or it reaches beyond the end.
    #[error("no record has {0} bytes")]
    Length(u32),
    /// Not all of it arrived, or something else wrote there.
    #[error("the checksum is wrong")]
    Checksum,
    /// Written by another version.
    #[error("kind {0} is unknown")]
    Kind(u8),
}

/// Encodes an entry into `out`. `generation` is that of the half that it is for.
pub fn encode(entry: &Entry<'_>, generation: u64, out: &mut Vec<u8>) {
    out.clear();
    out.extend([0; HEAD]);
    body(entry, out);
    head(generation, out);
}

/// Appends a record of this body, cut to the longest record, with a right length and checksum: for tests of what is decoded after
/// these.
pub fn seal(body: &[u8], generation: u64, out: &mut Vec<u8>) {
    let at = out.len();
    out.extend([0; HEAD]);
    out.extend(&body[..body.len().min(LONGEST - HEAD)]);
    head(generation, &mut out[at..]);
}

/// Kind and fields.
fn body(entry: &Entry<'_>, out: &mut Vec<u8>) {
    match *entry {
        Entry::Known { node, parent, name, dev, ino, born_ns, generation } => {
            out.push(KNOWN);
            for field in [node, parent, dev, ino, generation] {
                out.extend(field.to_le_bytes());
            }
            out.extend(born_ns.to_le_bytes());
            out.extend(name.as_bytes());
        }
        Entry::Forgotten { node } => one(FORGOTTEN, node, out),
        Entry::Opened { node } => one(OPENED, node, out),
        Entry::Released { node } => one(RELEASED, node, out),
    }
}

/// The bytes of a record of [`Entry::Known`] with this name.
pub(super) fn known_len(name: &OsStr) -> usize {
    ONE_LEN + 4 * size_of::<u64>() + size_of::<i128>() + name.len()
}

/// Appends a record of another half, for the half with this generation.
pub(super) fn copy(record: &[u8], generation: u64, out: &mut Vec<u8>) {
    let at = out.len();
    out.extend(record);
    head(generation, &mut out[at..]);
}

/// Fills in a record's length and checksum.
fn head(generation: u64, record: &mut [u8]) {
    let len = u32::try_from(record.len()).unwrap_or(u32::MAX).to_le_bytes();
    record[..4].copy_from_slice(&len);
    let sum = checksum(generation, len, &record[HEAD..]).to_le_bytes();
    record[4..HEAD].copy_from_slice(&sum);
}

fn one(kind: u8, node: u64, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend(node.to_le_bytes());
}

/// Decodes the first entry of `bytes`. Returns it with its length; `None` at the log's end.
///
/// # Errors
/// The bytes are no record of this half.
pub fn decode(bytes: &[u8], generation: u64) -> Result<Option<(OwnedEntry, usize)>, RecordError> {
    let decoded = decode_borrowed(bytes, generation)?;
    Ok(decoded.map(|(entry, len)| (entry.into(), len)))
}

/// The same without a copy of the name.
pub(super) fn decode_borrowed(
    bytes: &[u8],
    generation: u64,
) -> Result<Option<(Entry<'_>, usize)>, RecordError> {
    let mut fields = Fields(bytes);
    let Some(len) = fields.array().filter(|len| *len != [0; 4]) else {
        return Ok(None);
    };
    let length = u32::from_le_bytes(len);
    let bad_length = RecordError::Length(length);
    let whole = usize::try_from(length).map_err(|_| bad_length)?;
    let body = bytes.get(HEAD..whole).filter(|_| whole <= LONGEST).ok_or(bad_length)?;
    let sum = fields.array().ok_or(bad_length)?;
    if checksum(generation, len, body).to_le_bytes() != sum {
        return Err(RecordError::Checksum);
    }
    Ok(Some((entry(body, bad_length)?, whole)))
}

fn entry(body: &[u8], bad_length: RecordError) -> Result<Entry<'_>, RecordError> {
    let (&kind, rest) = body.split_first().ok_or(bad_length)?;
    let mut fields = Fields(rest);
    let node = fields.u64().ok_or(bad_length)?;
    match kind {
        KNOWN => known(node, &mut fields).ok_or(bad_length),
        FORGOTTEN => Ok(Entry::Forgotten { node }),
        OPENED => Ok(Entry::Opened { node }),
        RELEASED => Ok(Entry::Released { node }),
        other => Err(RecordError::Kind(other)),
    }
}

fn known<'a>(node: u64, fields: &mut Fields<'a>) -> Option<Entry<'a>> {
    let (parent, dev, ino, generation) = (fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?);
    let born_ns = i128::from_le_bytes(fields.array()?);
    let name = OsStr::from_bytes(fields.0);
    Some(Entry::Known { node, parent, name, dev, ino, born_ns, generation })
}

/// It covers the half's generation, so records that an earlier use of the half left do not match.
fn checksum(generation: u64, len: [u8; 4], body: &[u8]) -> u32 {
    let seed = generation ^ u64::from(u32::from_le_bytes(len)).rotate_left(40);
    (XxHash64::oneshot(seed, body) & u64::from(u32::MAX)) as u32
}

/// The bytes that are not decoded yet.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;
    use proptest::prelude::*;

    pub fn any_entry() -> impl Strategy<Value = OwnedEntry> {
        let node = 1u64..8;
        let name = proptest::collection::vec(1u8..=255, 1..20).prop_map(OsString::from_vec);
        let known = (node.clone(), node.clone(), name, any::<i128>(), any::<(u64, u64, u64)>());
        prop_oneof![
            4 => known.prop_map(|(node, parent, name, born_ns, (dev, ino, generation))| {
                OwnedEntry::Known { node, parent, name, dev, ino, born_ns, generation }
            }),
            2 => node.clone().prop_map(|node| OwnedEntry::Forgotten { node }),
            3 => node.clone().prop_map(|node| OwnedEntry::Opened { node }),
            3 => node.prop_map(|node| OwnedEntry::Released { node }),
        ]
    }

    fn bytes(entry: &OwnedEntry) -> Vec<u8> {
        let mut out = Vec::new();
        encode(&entry.entry(), 3, &mut out);
        out
    }

    proptest! {
        #[test]
        fn an_encoded_entry_is_decoded(entry in any_entry()) {
            let bytes = bytes(&entry);
            let len = if let OwnedEntry::Known { name, .. } = &entry { known_len(name) } else { ONE_LEN };
            prop_assert_eq!(bytes.len(), len);
            let mut copied = bytes.clone();
            copy(&bytes, 4, &mut copied);
            prop_assert_eq!(decode(&copied[len..], 4), Ok(Some((entry.clone(), len))));
            prop_assert_eq!(decode(&bytes, 3), Ok(Some((entry, len))));
            prop_assert!(decode(&bytes, 4).is_err());
        }

        #[test]
        fn a_part_of_a_record_is_an_error(entry in any_entry(), cut in 4usize..100) {
            let bytes = bytes(&entry);
            let part = &bytes[..cut.min(bytes.len() - 1)];
            prop_assert!(decode(part, 3).is_err());
            let mut padded = part.to_vec();
            padded.resize(bytes.len() + 8, 0);
            prop_assert!(decode(&padded, 3).is_err() || padded[..bytes.len()] == bytes);
        }

        #[test]
        fn any_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0usize..80, entry in any_entry()) {
            let _ = decode(&bytes, 3);
            let mut changed = self::bytes(&entry);
            let at = at % changed.len();
            changed[at] ^= 1;
            prop_assert!(decode(&changed, 3) != Ok(Some((entry, changed.len()))));
        }
    }
}

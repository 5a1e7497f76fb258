//! Names of blocks, and their keys in the engine. Pure.
//!
//! A key is `eke:{GROUP}:NN`. GROUP is a hash of the name without its last five bits, NN these bits. So [`GROUP`] neighbours are in one slot
//! of a cluster, and one request fetches them. A hash can only lead to a wrong block; the block itself has the whole name.

use std::fmt::Write as _;
use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher24};

/// Neighbouring blocks in one group: 2 MiB of a file.
pub const GROUP: u64 = 32;

/// The bytes of a name.
pub const NAME: usize = 68;

/// Slots of a cluster (the engine's specification).
pub const SLOTS: u16 = 16_384;

/// Which files these are: the same on all nodes that read one origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Origin(pub [u8; 16]);

impl Origin {
    /// The origin with a configured name.
    pub fn named(name: &str) -> Self {
        Self::of(b"name", name.as_bytes())
    }

    /// The origin with the id of a file system.
    pub fn file_system(id: u64) -> Self {
        Self::of(b"fsid", &id.to_le_bytes())
    }

    fn of(kind: &[u8], bytes: &[u8]) -> Self {
        Self(hash(&[0; 16], &[kind, bytes]))
    }
}

/// A version of a file: any change makes another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileVersion {
    /// Its inode.
    pub file: u64,
    /// In bytes.
    pub size: u64,
    /// mtime, ctime and birth, in nanoseconds since 1970. The birth is what tells generations of an inode apart.
    pub times_ns: [i64; 3],
}

/// The name of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name {
    /// Of which origin.
    pub origin: Origin,
    /// Of which version of which file.
    pub version: FileVersion,
    /// The bytes of a block.
    pub block_size: u32,
    /// Its number in the file.
    pub block: u64,
}

impl Name {
    /// As bytes.
    pub fn bytes(&self) -> [u8; NAME] {
        let mut out = [0; NAME];
        let FileVersion { file, size, times_ns } = self.version;
        let [modified, changed, born] = times_ns.map(i64::to_le_bytes);
        let (size, file, block) = (size.to_le_bytes(), file.to_le_bytes(), self.block.to_le_bytes());
        let parts: [&[u8]; 8] = [
            &self.origin.0,
            &file,
            &size,
            &modified,
            &changed,
            &born,
            &self.block_size.to_le_bytes(),
            &block,
        ];
        let mut at = 0;
        for part in parts {
            out[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        out
    }

    /// The key, by a secret or by zeros.
    pub fn key(&self, secret: &[u8; 16]) -> BlockKey {
        let group = Self { block: self.block / GROUP, ..*self };
        BlockKey { group: Group(hash(secret, &[&group.bytes()])), index: (self.block % GROUP) as u8 }
    }
}

/// Blocks of one slot that are asked for together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Group(pub [u8; 16]);

impl Group {
    /// Its slot in a cluster.
    pub fn slot(&self) -> u16 {
        crc16::State::<crc16::XMODEM>::calculate(self.hex().as_bytes()) % SLOTS
    }

    fn hex(&self) -> String {
        self.0.iter().fold(String::with_capacity(32), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

/// A block's place in the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockKey {
    /// Its group.
    pub group: Group,
    /// Which of the group's blocks.
    pub index: u8,
}

impl BlockKey {
    /// As the engine knows it.
    pub fn text(&self) -> String {
        format!("eke:{{{}}}:{:02x}", self.group.hex(), self.index)
    }
}

fn hash(secret: &[u8; 16], parts: &[&[u8]]) -> [u8; 16] {
    let mut hasher = SipHasher24::new_with_key(secret);
    parts.iter().for_each(|part| hasher.write(part));
    hasher.finish128().as_bytes()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn name() -> Name {
        let version = FileVersion { file: 7, size: 100_000, times_ns: [1, 2, 3] };
        Name { origin: Origin::named("web"), version, block_size: 65_536, block: 40 }
    }

    #[test]
    fn whatever_differs_makes_another_name_and_key() {
        let one = name();
        let version = |change: fn(&mut FileVersion)| {
            let mut other = one;
            change(&mut other.version);
            other
        };
        let all = [
            one,
            Name { origin: Origin::named("wiki"), ..one },
            Name { origin: Origin::file_system(7), ..one },
            Name { block_size: 4096, ..one },
            Name { block: 41, ..one },
            Name { block: 40 + GROUP, ..one },
            version(|v| v.file = 8),
            version(|v| v.size += 1),
            version(|v| v.times_ns[0] += 1),
            version(|v| v.times_ns[1] += 1),
            version(|v| v.times_ns[2] += 1),
        ];
        let names: HashSet<_> = all.iter().map(Name::bytes).collect();
        let keys: HashSet<_> = all.iter().map(|name| name.key(&[0; 16]).text()).collect();
        assert_eq!((names.len(), keys.len()), (all.len(), all.len()));
        assert_ne!(one.key(&[0; 16]), one.key(&[1; 16]), "by a secret it is another one");
    }

    #[test]
    fn neighbours_are_in_one_slot() {
        let key = |block| Name { block, ..name() }.key(&[0; 16]);
        assert_eq!(key(32).group, key(63).group);
        assert_ne!(key(63).group, key(64).group);
        let text = key(33).text();
        assert!(text.starts_with("eke:{") && text.ends_with("}:01") && text.len() == 41, "{text}");
        assert!(key(32).group.slot() < SLOTS);
    }

    #[test]
    fn a_slot_is_that_of_the_engines_specification() {
        assert_eq!(crc16::State::<crc16::XMODEM>::calculate(b"123456789"), 0x31c3);
    }
}

#[cfg(test)]
pub(crate) mod tests_support {
    use super::*;

    /// Block `block` of a file.
    pub fn name(block: u64) -> Name {
        let version = FileVersion { file: 7, size: 1 << 30, times_ns: [1, 2, 3] };
        Name { origin: Origin::named("web"), version, block_size: 65_536, block }
    }
}

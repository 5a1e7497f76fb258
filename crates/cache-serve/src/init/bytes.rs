//! The bytes of `FUSE_INIT`, request and reply, as in the kernel's `uapi/linux/fuse.h`.

use thiserror::Error;

/// `FUSE_INIT`.
const OPCODE: u32 = 26;
/// The protocol's major version, the same since 2006.
const MAJOR: u32 = 7;
/// The flag for a second word of flags, from bit 32 on.
const INIT_EXT: u64 = 1 << 30;
/// `fuse_in_header`.
const HEADER: usize = 40;
/// The shortest request: before 7.36 it had no second word of flags.
const SHORTEST: usize = HEADER + 16;

/// What the kernel offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// The request's number.
    pub unique: u64,
    /// The protocol's version after the 7.
    pub minor: u32,
    /// In bytes.
    pub max_readahead: u32,
    /// `FUSE_*` of fuser's `InitFlags`.
    pub flags: u64,
}

/// What both sides agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// The protocol's version after the 7.
    pub minor: u32,
    /// In bytes.
    pub max_readahead: u32,
    /// `FUSE_*` of fuser's `InitFlags`.
    pub flags: u64,
    /// Requests in flight that nobody waits for (readahead), at most.
    pub max_background: u16,
    /// From this many of them on, the kernel throttles readahead.
    pub congestion_threshold: u16,
    /// In bytes.
    pub max_write: u32,
    /// Pages of one request, at most.
    pub max_pages: u16,
    /// File systems that may be stacked for passthrough; 0: no passthrough.
    pub max_stack_depth: u32,
}

/// Bytes that are no valid `FUSE_INIT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InitError {
    /// Too few bytes.
    #[error("{0} bytes are no FUSE_INIT")]
    Short(usize),
    /// Another request.
    #[error("request {0} came before FUSE_INIT")]
    Request(u32),
    /// Another protocol.
    #[error("the kernel's FUSE protocol is version {0}; eke-cache needs version 7")]
    Major(u32),
}

/// Decodes the kernel's first request.
///
/// # Errors
/// The bytes are no `FUSE_INIT`.
pub fn decode(bytes: &[u8]) -> Result<Offer, InitError> {
    if bytes.len() < SHORTEST {
        return Err(InitError::Short(bytes.len()));
    }
    let word = |at| u32_at(bytes, at).ok_or(InitError::Short(bytes.len()));
    match (word(4)?, word(HEADER)?) {
        (OPCODE, MAJOR) => {}
        (OPCODE, major) => return Err(InitError::Major(major)),
        (other, _) => return Err(InitError::Request(other)),
    }
    let low = u64::from(word(HEADER + 12)?);
    let high = if low & INIT_EXT == 0 { 0 } else { u32_at(bytes, HEADER + 16).unwrap_or(0) };
    let unique = u64::from(word(8)?) | u64::from(word(12)?) << 32;
    let unique = if cfg!(target_endian = "little") { unique } else { unique.rotate_left(32) };
    let flags = low | u64::from(high) << 32;
    Ok(Offer { unique, minor: word(HEADER + 4)?, max_readahead: word(HEADER + 8)?, flags })
}

/// The reply to the kernel's first request.
pub fn encode_reply(unique: u64, grant: &Grant) -> [u8; 80] {
    let mut out = Bytes::<80>::new();
    out.put(&80u32.to_ne_bytes()).put(&0i32.to_ne_bytes()).put(&unique.to_ne_bytes());
    out.words(&[MAJOR, grant.minor, grant.max_readahead, low(grant.flags)]);
    out.put(&grant.max_background.to_ne_bytes()).put(&grant.congestion_threshold.to_ne_bytes());
    out.words(&[grant.max_write, 1]); // times in nanoseconds
    out.put(&grant.max_pages.to_ne_bytes()).put(&[0; 2]);
    out.words(&[high(grant.flags), grant.max_stack_depth]);
    out.bytes
}

/// The first request of a kernel that offers exactly what was agreed on.
pub fn encode_request(grant: &Grant) -> [u8; 104] {
    let mut out = Bytes::<104>::new();
    out.words(&[104, OPCODE]).put(&1u64.to_ne_bytes()).put(&[0; HEADER - 16]);
    out.words(&[MAJOR, grant.minor, grant.max_readahead, low(grant.flags | INIT_EXT), high(grant.flags)]);
    out.bytes
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn low(flags: u64) -> u32 {
    (flags & u64::from(u32::MAX)) as u32
}

fn high(flags: u64) -> u32 {
    (flags >> 32) as u32
}

/// Zeros, filled from the start.
struct Bytes<const N: usize> {
    bytes: [u8; N],
    at: usize,
}

impl<const N: usize> Bytes<N> {
    fn new() -> Self {
        Self { bytes: [0; N], at: 0 }
    }

    fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
        self
    }

    fn words(&mut self, words: &[u32]) -> &mut Self {
        for word in words {
            self.put(&word.to_ne_bytes());
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GRANT: Grant = Grant {
        minor: 40,
        max_readahead: 131_072,
        flags: (1 << 39) | INIT_EXT | 1,
        max_background: 64,
        congestion_threshold: 48,
        max_write: 1 << 20,
        max_pages: 256,
        max_stack_depth: 1,
    };

    #[test]
    fn an_encoded_request_is_decoded_as_an_offer() {
        let offer = decode(&encode_request(&GRANT)).unwrap();
        assert_eq!(offer, Offer { unique: 1, minor: 40, max_readahead: 131_072, flags: GRANT.flags });
    }

    /// Offsets from `struct fuse_init_out` of Linux 6.18, after the 16 bytes of `fuse_out_header`.
    #[test]
    fn the_reply_has_its_fields_where_the_kernel_reads_them() {
        let bytes = encode_reply(0x1122_3344_5566_7788, &GRANT);
        let word = |at| u32_at(&bytes, at).unwrap();
        let half = |at: usize| u16::from_ne_bytes(bytes[at..at + 2].try_into().unwrap());
        assert_eq!((word(0), word(4)), (80, 0));
        assert_eq!(u64::from_ne_bytes(bytes[8..16].try_into().unwrap()), 0x1122_3344_5566_7788);
        assert_eq!((word(16), word(20), word(24), word(28)), (7, 40, 131_072, (1 << 30) | 1));
        assert_eq!((half(32), half(34), word(36), word(40)), (64, 48, 1 << 20, 1));
        assert_eq!((half(44), half(46), word(48), word(52)), (256, 0, 1 << 7, 1));
        assert!(bytes[56..].iter().all(|b| *b == 0));
    }

    #[test]
    fn another_request_or_protocol_is_an_error() {
        let mut bytes = encode_request(&GRANT);
        bytes[40..44].copy_from_slice(&8u32.to_ne_bytes());
        assert_eq!(decode(&bytes), Err(InitError::Major(8)));
        bytes[4..8].copy_from_slice(&3u32.to_ne_bytes());
        assert_eq!(decode(&bytes), Err(InitError::Request(3)));
        assert_eq!(decode(&bytes[..55]), Err(InitError::Short(55)));
    }

    #[test]
    fn the_second_word_of_flags_counts_only_if_the_first_has_init_ext() {
        let mut bytes = encode_request(&GRANT);
        bytes[52..56].copy_from_slice(&1u32.to_ne_bytes());
        assert_eq!(decode(&bytes).unwrap().flags, 1);
    }

    proptest! {
        #[test]
        fn foreign_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }

        #[test]
        fn a_changed_request_never_panics(at in 0usize..104, byte: u8, len in 0usize..=104) {
            let mut bytes = encode_request(&GRANT);
            bytes[at] = byte;
            let _ = decode(&bytes[..len]);
        }
    }
}

//! Sealed blocks (`--encrypt`): authenticated encryption, for engines that others share. A forged, exchanged or changed block does not open.
//!
//! `ekeE`, a random nonce of 24 bytes, then XChaCha20-Poly1305 of form, length in the file and stored bytes. The name is authenticated and
//! not stored: it is not readable in the engine. Its hash in the key is keyed.

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use eke_cache_store::Form;
use siphasher::sip128::{Hasher128, SipHasher24};
use std::hash::Hasher;

use crate::key::{NAME, Name};
use crate::record::StoredBlock;

/// The bytes of a key file.
pub const KEY: usize = 32;

const MAGIC: [u8; 4] = *b"ekeE";
const NONCE: usize = 24;
/// Form and length in the file.
const INNER: usize = 5;

/// The key, ready for use.
#[derive(Clone)]
pub struct Seal {
    cipher: XChaCha20Poly1305,
    names: [u8; 16],
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seal").finish_non_exhaustive()
    }
}

impl Seal {
    /// With a random key.
    pub fn new(key: &[u8; KEY]) -> Self {
        let (low, high) = key.split_at(16);
        let mut secret = [0; 16];
        secret.copy_from_slice(low);
        let mut hasher = SipHasher24::new_with_key(&secret);
        hasher.write(high);
        hasher.write(b"eke names");
        let names = hasher.finish128().as_bytes();
        Self { cipher: XChaCha20Poly1305::new(&Key::from(*key)), names }
    }

    /// The secret of keys in the engine.
    pub fn names(&self) -> &[u8; 16] {
        &self.names
    }

    /// The block, sealed by a nonce that was never used before: a random one. `None`: there is no memory.
    pub fn seal(&self, name: &Name, block: &StoredBlock<'_>, nonce: [u8; NONCE]) -> Option<Vec<u8>> {
        let mut inner = Vec::with_capacity(INNER + block.compressed.len());
        inner.push(block.form.code());
        inner.extend((block.raw_len as u32).to_le_bytes());
        inner.extend(block.compressed);
        let payload = Payload { msg: &inner, aad: &associated(name) };
        let sealed = self.cipher.encrypt(&XNonce::from(nonce), payload).ok()?;
        Some([&MAGIC[..], &nonce, &sealed].concat())
    }

    /// Opens a value into `buffer`. `None`: it was not sealed by this key for this block.
    pub fn open<'b>(&self, name: &Name, bytes: &[u8], buffer: &'b mut Vec<u8>) -> Option<StoredBlock<'b>> {
        let (magic, rest) = bytes.split_at_checked(MAGIC.len())?;
        let (nonce, sealed) = rest.split_at_checked(NONCE)?;
        if magic != MAGIC {
            return None;
        }
        let nonce: [u8; NONCE] = nonce.try_into().ok()?;
        let payload = Payload { msg: sealed, aad: &associated(name) };
        *buffer = self.cipher.decrypt(&XNonce::from(nonce), payload).ok()?;
        let (form, rest) = buffer.split_first()?;
        let (raw_len, compressed) = rest.split_at_checked(4)?;
        let raw_len = u32::from_le_bytes(raw_len.try_into().ok()?) as usize;
        let block = StoredBlock { form: Form::of_code(*form)?, raw_len, compressed };
        block.is_possible().then_some(block)
    }
}

fn associated(name: &Name) -> [u8; 4 + NAME] {
    let mut out = [0; 4 + NAME];
    out[..4].copy_from_slice(&MAGIC);
    out[4..].copy_from_slice(&name.bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::tests_support::name;

    const BLOCK: StoredBlock<'_> =
        StoredBlock { form: Form::Fast, raw_len: 65_536, compressed: b"secret bytes" };

    #[test]
    fn a_sealed_block_opens_by_its_key_and_name_alone() {
        let (seal, other) = (Seal::new(&[1; KEY]), Seal::new(&[2; KEY]));
        let bytes = seal.seal(&name(5), &BLOCK, [9; NONCE]).unwrap();
        let mut buffer = Vec::new();
        assert_eq!(seal.open(&name(5), &bytes, &mut buffer), Some(BLOCK));
        assert_eq!(seal.open(&name(6), &bytes, &mut buffer), None);
        assert_eq!(other.open(&name(5), &bytes, &mut buffer), None);
        assert_ne!(seal.names(), other.names());
        assert!(!bytes.windows(6).any(|part| part == b"secret"));
    }

    #[test]
    fn no_changed_byte_opens() {
        let seal = Seal::new(&[1; KEY]);
        let bytes = seal.seal(&name(5), &BLOCK, [9; NONCE]).unwrap();
        let mut buffer = Vec::new();
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_eq!(seal.open(&name(5), &other, &mut buffer), None, "{at}");
            assert_eq!(seal.open(&name(5), &bytes[..at], &mut buffer), None, "{at}");
        }
    }
}

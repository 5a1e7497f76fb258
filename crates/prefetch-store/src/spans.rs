//! Encodes pages as variable-length integers (LEB128: seven bits a byte, the lowest first; the eighth bit is set if more follow): for each span the
//! gap since the end of the previous one, and its length. The first gap counts from page 0; each later gap and each length is stored less one,
//! because neither can be zero.

use eke_prefetch_model::pages::{PAGE_BYTES, Pages, Span};

/// No file has more pages: file lengths are signed (`off_t`).
const MOST_PAGES: u64 = i64::MAX as u64 / PAGE_BYTES;

/// Encodes pages.
pub fn encode(pages: &Pages) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(4 * pages.spans().len());
    let mut after = 0;
    for (at, span) in pages.spans().iter().enumerate() {
        put(&mut bytes, span.first - after - u64::from(at > 0));
        put(&mut bytes, span.pages() - 1);
        after = span.end;
    }
    bytes
}

/// Decodes pages; `None` if [`encode`] did not produce the bytes.
pub fn decode(mut bytes: &[u8]) -> Option<Pages> {
    let mut spans = Vec::new();
    let mut after = 0u64;
    while !bytes.is_empty() {
        let gap = take(&mut bytes)?.checked_add(u64::from(!spans.is_empty()))?;
        let first = after.checked_add(gap)?;
        let end = first.checked_add(take(&mut bytes)?)?.checked_add(1)?;
        spans.push(Span::new(first, end).filter(|span| span.end <= MOST_PAGES)?);
        after = end;
    }
    Some(spans.into_iter().collect())
}

/// Appends an integer.
pub(super) fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Takes an integer from the front.
pub(super) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let low = u64::from(byte & 0x7f);
        if low.leading_zeros() < shift {
            return None;
        }
        value |= low << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_is_as_documented() {
        let pages: Pages = [(0, 1), (3, 303)].into_iter().filter_map(|(a, b)| Span::new(a, b)).collect();
        assert_eq!(encode(&pages), [0, 0, 1, 0xab, 2]);
        assert!(encode(&Pages::default()).is_empty());
    }

    proptest! {
        #[test]
        fn it_comes_back(spans in proptest::collection::vec((0u64..1 << 50, 1u64..1 << 40), 0..40)) {
            let pages: Pages = spans.iter().filter_map(|(a, n)| Span::new(*a, a + n)).collect();
            prop_assert_eq!(decode(&encode(&pages)), Some(pages));
        }

        #[test]
        fn anything_is_pages_or_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Some(pages) = decode(&bytes) {
                prop_assert_eq!(decode(&encode(&pages)), Some(pages));
            }
        }
    }
}

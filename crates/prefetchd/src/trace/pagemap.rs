//! `/proc/PID/pagemap` (Documentation/admin-guide/mm/pagemap.rst): which pages of a mapping a process has.

use eke_prefetch_model::pages::MachineSpan;

/// In memory (bit 63), or swapped (62): a written page of a private mapping, which was read from the file before.
const PRESENT: u64 = 0b11 << 62;

/// The present pages, in the machine's pages, from entries of `/proc/PID/pagemap` of eight bytes each; the first entry is for page `first`.
pub fn present_pages(entries: &[u8], first: u64) -> Vec<MachineSpan> {
    let is_present =
        |entry: &[u8]| entry.try_into().is_ok_and(|bytes| u64::from_ne_bytes(bytes) & PRESENT != 0);
    let mut spans: Vec<MachineSpan> = Vec::new();
    for page in
        (first..).zip(entries.chunks_exact(8)).filter(|(_, entry)| is_present(entry)).map(|(page, _)| page)
    {
        match spans.last_mut().filter(|span| span.end == page) {
            Some(span) => span.end += 1,
            None => spans.extend(MachineSpan::new(page, page.saturating_add(1))),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_those_in_memory_or_swapped() {
        let entries = [1u64 << 63, 1 << 62, 0, 1 << 61, 1 << 63 | 5];
        let bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_ne_bytes()).collect();
        assert_eq!(
            present_pages(&bytes, 10),
            [MachineSpan { first: 10, end: 12 }, MachineSpan { first: 14, end: 15 }]
        );
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_pages_or_none(text in proptest::collection::vec(0u8.., 0..200)) {
            let _ = present_pages(&text, 0);
        }
    }
}

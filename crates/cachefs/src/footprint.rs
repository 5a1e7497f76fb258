//! The memory that tables take, computed from how they are built.

/// The heap memory of an allocation of `bytes`: 8 bytes of overhead, in steps of 16, at least 32 (glibc's `MALLOC_ALIGNMENT`
/// and `MINSIZE`).
pub(crate) fn allocated(bytes: usize) -> usize {
    (bytes + 8).next_multiple_of(16).max(32)
}

/// The memory of a `HashMap` with this capacity and entry size: eight buckets for seven entries, each with one byte of its
/// hash.
pub(crate) fn map(capacity: usize, entry: usize) -> usize {
    capacity.div_ceil(7) * 8 * (entry + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_pieces_take_as_much_as_the_smallest() {
        assert_eq!([0, 1, 24, 25, 40, 41].map(allocated), [32, 32, 32, 48, 48, 64]);
    }

    #[test]
    fn a_map_has_room_for_more_than_its_entries() {
        assert_eq!((map(0, 64), map(28, 63)), (0, 32 * 64));
    }
}

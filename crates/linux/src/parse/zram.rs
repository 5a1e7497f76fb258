//! `/sys/block/zramN/*` (Documentation/admin-guide/blockdev/zram.rst).

use eke_model::sample::ZramStat;
use eke_model::units::Bytes;

/// `mm_stat` (Linux 4.1): orig_data_size compr_data_size mem_used_total mem_limit mem_used_max same_pages
/// pages_compacted huge_pages (4.20) huge_pages_since (5.7). A field that an older kernel lacks is 0.
pub fn mm_stat(name: &str, text: &str) -> ZramStat {
    let n: Vec<u64> = text.split_whitespace().map(|w| w.parse().unwrap_or(0)).collect();
    let at = |i: usize| n.get(i).copied().unwrap_or(0);
    ZramStat {
        name: name.to_owned(),
        orig_data: Bytes(at(0)),
        compr_data: Bytes(at(1)),
        mem_used: Bytes(at(2)),
        mem_used_max: Bytes(at(4)),
        same_pages: at(5),
        huge_pages: at(7),
        ..ZramStat::default()
    }
}

/// The first field of `bd_stat` (Linux 4.14): bd_count bd_reads bd_writes, in units of 4 KiB.
pub fn bd_count(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

/// The names in `comp_algorithm`, in the kernel's order: `lzo-rle lzo [lz4]`.
pub fn algorithms(text: &str) -> Vec<String> {
    text.split_whitespace().map(|w| w.trim_matches(['[', ']']).to_owned()).collect()
}

/// The selected word of a list such as `lzo [lz4] zstd`.
pub fn bracketed(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_mm_stat_of_new_and_old_kernels() {
        let s = mm_stat("zram1", "16777216  4325376  4481024  0  4481024  12  0  34  34\n");
        assert_eq!(
            (s.orig_data, s.mem_used, s.same_pages, s.huge_pages),
            (Bytes::mib(16), Bytes(4_481_024), 12, 34)
        );
        assert_eq!(mm_stat("zram1", "1 2 3").huge_pages, 0);
    }

    #[test]
    fn algorithms_lose_their_brackets() {
        assert_eq!(algorithms("lzo-rle lzo [lz4] \n"), ["lzo-rle", "lzo", "lz4"]);
    }
}

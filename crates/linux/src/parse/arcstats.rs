//! `/proc/spl/kstat/zfs/arcstats`: ZFS's cache of files (ARC), which is kernel memory. A line has a name, a type and a value.

use eke_model::units::Bytes;

/// Buffers in the two lists of the cache that nobody uses now; others cannot be evicted.
const EVICTABLE: [&str; 4] =
    ["mru_evictable_data", "mru_evictable_metadata", "mfu_evictable_data", "mfu_evictable_metadata"];

/// What the cache can give back when memory is short: what is evictable, and not below its least size (`size` and `c_min`,
/// module/zfs/arc.c of OpenZFS). 0 if a line is missing.
pub fn reclaimable(text: &str) -> Bytes {
    let of = |name: &str| Some(Bytes(value(text, name)?));
    let above_least = of("size").zip(of("c_min")).map(|(size, least)| size.saturating_sub(least));
    let evictable: Option<Bytes> = EVICTABLE.into_iter().map(of).sum();
    above_least.zip(evictable).map(|(above, evictable)| above.min(evictable)).unwrap_or_default()
}

fn value(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_ascii_whitespace);
    lines.find_map(|mut words| (words.next()? == name).then(|| words.nth(1))?)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With the last line as given, and `each` bytes evictable in each list.
    fn of(each: &str, last: &str) -> Bytes {
        let head =
            "13 1 0x01 147 39984 5135092211 2934837204534\nname                            type data\n";
        let lists: String =
            EVICTABLE.iter().map(|list| format!("{list}              4    {each}\n")).collect();
        reclaimable(&format!(
            "{head}hits                            4    72\nmru_ghost_evictable_data        4    9000\n{lists}c_min                           4    1000\n{last}\n"
        ))
    }

    #[test]
    fn the_cache_keeps_its_least_size() {
        let size = |value: &str| of("2000", &format!("size                            4    {value}"));
        assert_eq!(size("5000"), Bytes(4000));
        assert_eq!(["900", "x", ""].map(size), [Bytes(0); 3]);
        assert_eq!(of("2000", "data_size                       4    5000"), Bytes(0));
        assert_eq!(reclaimable(""), Bytes(0));
    }

    #[test]
    fn what_is_in_use_is_not_evicted() {
        let evictable = |each: &str| of(each, "size                            4    5000");
        assert_eq!(["0", "300", "18446744073709551615", "x"].map(evictable), [0, 1200, 4000, 0].map(Bytes));
        assert_eq!(reclaimable("c_min 4 1000\nsize 4 5000\n"), Bytes(0), "no lists");
    }
}

//! `/proc/spl/kstat/zfs/arcstats`: ZFS's cache of files (ARC), which is kernel memory. A line has a name, a type and a value.

use eke_model::units::Bytes;

/// What the cache gives back when memory is short: all above its least size (`size` and `c_min`, module/zfs/arc.c of OpenZFS). 0 if a line
/// is missing.
pub fn reclaimable(text: &str) -> Bytes {
    let of = |name: &str| Some(Bytes(value(text, name)?));
    let above_least = of("size").zip(of("c_min")).map(|(size, least)| size.saturating_sub(least));
    above_least.unwrap_or_default()
}

fn value(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_ascii_whitespace);
    lines.find_map(|mut words| (words.next()? == name).then(|| words.nth(1))?)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_keeps_its_least_size() {
        let with = |size: &str| {
            let head =
                "13 1 0x01 147 39984 5135092211 2934837204534\nname                            type data\n";
            format!(
                "{head}hits                            4    72\nc_min                           4    1000\n{size}"
            )
        };
        let size =
            |value: &str| reclaimable(&with(&format!("size                            4    {value}\n")));
        assert_eq!(size("5000"), Bytes(4000));
        assert_eq!(["900", "x", ""].map(size), [Bytes(0); 3]);
        assert_eq!(reclaimable(&with("data_size                       4    5000\n")), Bytes(0));
        assert_eq!(reclaimable(""), Bytes(0));
    }
}

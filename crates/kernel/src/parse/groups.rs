//! Control files of groups of processes (cgroup v1 and v2): `name value` a line, or one number.

/// The value of `key` in a flat keyed file such as `memory.stat` or `memory.events`.
pub fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(' '))?.trim().parse().ok()
}

/// A limit: `None` for `max`, and for cgroup v1's "no limit" (the largest page-aligned number).
pub fn limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|n| *n < i64::MAX as u64 / 4096 * 4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_keys_and_limits() {
        assert_eq!(keyed("cache 1\nswap 8192\nswapcached 3\n", "swap"), Some(8192));
        assert_eq!(limit("max\n"), None);
        assert_eq!(limit("9223372036854771712\n"), None);
        assert_eq!(limit("167772160\n"), Some(167_772_160));
    }
}

//! `/proc/meminfo` (proc_meminfo(5)). Its "kB" are KiB.

use eke_model::sample::Memory;
use eke_model::units::Bytes;

use super::keyed;

/// The values that eke uses. A missing line is zero, or `None` in an `Option`.
pub fn parse(text: &str) -> Memory {
    let get = |key: &str| field(text, key);
    let or_zero = |key: &str| get(key).unwrap_or_default();
    Memory {
        total: or_zero("MemTotal").saturating_sub(huge_pages(text)),
        free: or_zero("MemFree"),
        available: get("MemAvailable").unwrap_or_else(|| or_zero("MemFree") + or_zero("Cached")),
        anonymous: or_zero("AnonPages"),
        file_cache: (or_zero("Cached") + or_zero("Buffers")).saturating_sub(or_zero("Shmem")),
        shared: or_zero("Shmem"),
        unevictable: or_zero("Unevictable"),
        swap_cached: or_zero("SwapCached"),
        swap_total: or_zero("SwapTotal"),
        swap_free: or_zero("SwapFree"),
        zswap_pool: get("Zswap"),
        zswap_stored: get("Zswapped"),
    }
}

/// RAM reserved as huge pages (hugetlbpage.rst), used or not: `MemTotal` counts it, and it is neither swapped nor given to other
/// programs. Before Linux 4.16 only those of the default size are known.
fn huge_pages(text: &str) -> Bytes {
    let of_default_size = || {
        let pages: u64 = keyed::value(text, "HugePages_Total")?.trim().parse().ok()?;
        Some(Bytes(pages.saturating_mul(field(text, "Hugepagesize")?.0)))
    };
    field(text, "Hugetlb").or_else(of_default_size).unwrap_or_default()
}

/// The value of one line in bytes.
pub fn field(text: &str, key: &str) -> Option<Bytes> {
    let kib: u64 = keyed::value(text, key)?.split_whitespace().next()?.parse().ok()?;
    Some(Bytes(kib.saturating_mul(1024)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_linux_6_shows() {
        let m = parse(
            "MemTotal:       126976 kB\nMemFree:         1000 kB\nMemAvailable:   50000 kB\nBuffers:  10 kB\nCached: 300 kB\nSwapCached: 7 kB\nAnonPages:       40960 kB\nShmem: 10 kB\nUnevictable: 20 kB\nMlocked: 12 kB\nSwapTotal: 9 kB\nZswap:   0 kB\n",
        );
        assert_eq!(m.total, Bytes::mib(124));
        assert_eq!(m.file_cache, Bytes(300 << 10));
        assert_eq!(m.shared, Bytes(10 << 10));
        assert_eq!((m.unevictable, m.swap_cached), (Bytes(20 << 10), Bytes(7 << 10)));
        assert_eq!((m.zswap_pool, m.zswap_stored), (Some(Bytes(0)), None));
    }

    #[test]
    fn reserved_huge_pages_are_no_ram_for_programs() {
        let total = |lines: &str| parse(&format!("MemTotal: 67108864 kB\n{lines}")).total;
        let default_size = "HugePages_Total: 30720\nHugepagesize: 2048 kB\n";
        assert_eq!(total(default_size), Bytes::mib(4 << 10), "before Linux 4.16");
        assert_eq!(total(&format!("{default_size}Hugetlb: 62914560 kB\n")), Bytes::mib(4 << 10));
        assert_eq!(total("HugePages_Total: 0\nHugepagesize: 2048 kB\nHugetlb: 0 kB\n"), Bytes::mib(64 << 10));
        assert_eq!(total("HugePages_Total: 18446744073709551615\nHugepagesize: 2048 kB\n"), Bytes(0));
    }
}

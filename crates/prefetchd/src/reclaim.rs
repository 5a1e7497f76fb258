//! What reclaim of memory takes from programs, from `/proc/vmstat`. Pure.

use eke_linux::parse::keyed;

/// Counters since the boot, in pages of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Reclaim {
    /// File pages that were read again so soon after their eviction that more memory would have kept them (`workingset_activate_file`, mm/workingset.c).
    /// `workingset_refault_file` also counts pages that were evicted long before: a backup reads many of these while no memory is short. With
    /// MGLRU (`lru_gen_refault`) pages that are read by read(2) do not count as activated, but those in use before (`workingset_restore_file`) do
    /// in both ways: so the larger number counts.
    pub(crate) refaulted: u64,
    /// Pages that the kernel reclaimed.
    pub(crate) reclaimed: u64,
}

impl Reclaim {
    /// A missing counter is 0. Before Linux 5.9, one counter covers file pages and anonymous ones.
    pub(crate) fn parse(vmstat: &str) -> Self {
        let count = |name| keyed::count(vmstat, name);
        let files =
            ["workingset_activate_file", "workingset_restore_file"].into_iter().filter_map(count).max();
        let refaulted = files.or_else(|| count("workingset_activate"));
        let reclaimed = ["pgsteal_kswapd", "pgsteal_direct"].map(|name| count(name).unwrap_or(0));
        Self { refaulted: refaulted.unwrap_or(0), reclaimed: reclaimed[0].saturating_add(reclaimed[1]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_refaults_of_what_was_in_use_count() {
        let reclaimed = "pgsteal_kswapd 3\npgsteal_direct 4\npgsteal_direct_x 100\n";
        let of = |refaults: &str| Reclaim::parse(&format!("{refaults}{reclaimed}"));
        let backup =
            "workingset_refault_file 90000\nworkingset_activate_anon 7\nworkingset_activate_file 12\n";
        assert_eq!(of(backup), Reclaim { refaulted: 12, reclaimed: 7 });
        let by_generations = "workingset_activate_file 1\nworkingset_restore_file 9\n";
        assert_eq!(of(by_generations).refaulted, 9, "MGLRU");
        assert_eq!(of("workingset_refault 90000\nworkingset_activate 5\n").refaulted, 5, "before Linux 5.9");
        assert_eq!(Reclaim::parse(""), Reclaim::default());
    }
}

//! `/proc/vmstat`: a name and a count per line.

use eke_model::sample::VmCounters;

/// The counters that eke uses; a missing one is 0.
pub fn parse(text: &str) -> VmCounters {
    let mut c = VmCounters::default();
    for (name, value) in text.lines().filter_map(|l| l.split_once(' ')) {
        let Ok(value) = value.trim().parse::<u64>() else { continue };
        match name {
            "pswpin" => c.pswpin = value,
            "pswpout" => c.pswpout = value,
            "zswpin" => c.zswpin = value,
            "zswpout" => c.zswpout = value,
            "zswpwb" => c.zswpwb = value,
            "pgmajfault" => c.pgmajfault = value,
            "workingset_refault_anon" => c.refault_anon = value,
            // Before Linux 5.9, one counter covers both kinds.
            "workingset_refault_file" | "workingset_refault" => c.refault_file = value,
            "pgsteal_anon" => c.pgsteal_anon = value,
            "pgscan_kswapd" | "pgscan_direct" => c.pgscan_global = c.pgscan_global.saturating_add(value),
            "oom_kill" => c.oom_kill = value,
            _ => {}
        }
    }
    c
}

#[cfg(test)]
mod tests {
    #[test]
    fn reads_names_and_skips_the_rest() {
        let c = super::parse(
            "nr_free_pages 5\npswpin 12\npswpout 34\noom_kill 1\nzswpin x\npgscan_kswapd 5\npgscan_direct 6\npgscan_direct_throttle 7\npgscan_anon 8\n",
        );
        assert_eq!((c.pswpin, c.pswpout, c.oom_kill, c.zswpin), (12, 34, 1, 0));
        assert_eq!(c.pgscan_global, 11);
    }
}

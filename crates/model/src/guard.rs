//! When the guard stays off: one rule for the guard itself and for the plan's sentence about it.

use crate::config::Enabled;
use crate::process::is_of_service;

/// Daemons that end programs when memory is short, by the kernel's name (at most 15 bytes). Not low-memory-monitor, which only
/// notifies programs by default.
const DAEMONS: [&str; 7] =
    ["earlyoom", "nohang", "nohang-desktop", "oomd", "systemd-oomd", "psi-monitor", "bustd"];

/// What else may keep the machine usable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Others<'a> {
    /// A running daemon that [`is_daemon`].
    pub daemon: Option<&'a str>,
    /// Is the multi-generational LRU on? `None`: the kernel has none.
    pub lru_gen: Option<bool>,
    /// `lru_gen/min_ttl_ms`.
    pub min_ttl_ms: Option<u32>,
}

/// Why the guard does nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Off<'a> {
    /// The user switched it off.
    BySettings,
    /// This daemon does the same.
    Daemon(&'a str),
    /// The kernel ends programs before it evicts a working set of this age.
    MinTtl {
        /// `lru_gen/min_ttl_ms`.
        ms: u32,
    },
}

/// How much the guard does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// All its steps.
    All,
    /// It ends a program when memory has been exhausted for a while, and takes no milder step: this daemon acts first. Daemons count free
    /// swap as free memory, and compressed swap is still half free when RAM has ended with data that does not compress. (earlyoom acts when available memory and
    /// free swap are both at 10 % of theirs, systemd-oomd at 90 % of swap in use, as installed.)
    LastResort(&'a str),
    /// Nothing.
    Nothing(Off<'a>),
}

/// Whether a process is a daemon that ends programs when memory is short. Any user can choose a name, so only root's processes
/// count, and those of users that nobody logs in as (systemd-oomd and Debian's earlyoom have one) whose executable, `program`,
/// has that name. A script (`nohang` is one) is found by the name that it gave itself.
pub fn is_daemon(name: &str, is_roots: bool, user: u32, program: Option<&str>) -> bool {
    DAEMONS.contains(&name) && (is_roots || (is_of_service(user) && program == Some(name)))
}

/// Why the guard stays off; `None` if it is on. Without the multi-generational LRU the kernel reads no `min_ttl_ms`
/// (Documentation/admin-guide/mm/multigen_lru.rst, Linux 6.1).
pub fn off<'a>(choice: Enabled, others: &Others<'a>) -> Option<Off<'a>> {
    let min_ttl = others.min_ttl_ms.filter(|ms| *ms > 0 && others.lru_gen == Some(true));
    match choice {
        Enabled::Off => Some(Off::BySettings),
        Enabled::On => None,
        Enabled::Auto => others.daemon.map(Off::Daemon).or(min_ttl.map(|ms| Off::MinTtl { ms })),
    }
}

/// How much the guard does. `compressed`: swap is compressed in RAM, by zram or zswap.
pub fn part<'a>(choice: Enabled, others: &Others<'a>, compressed: bool) -> Part<'a> {
    match off(choice, others) {
        None => Part::All,
        Some(Off::Daemon(name)) if compressed => Part::LastResort(name),
        Some(off) => Part::Nothing(off),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beside_a_daemon_that_compressed_swap_blinds_it_is_the_last_resort() {
        let daemon = Others { daemon: Some("earlyoom"), ..Others::default() };
        let auto = |others, compressed| part(Enabled::Auto, &others, compressed);
        assert_eq!(auto(daemon, true), Part::LastResort("earlyoom"));
        assert_eq!(auto(daemon, false), Part::Nothing(Off::Daemon("earlyoom")));
        assert_eq!(part(Enabled::Off, &daemon, true), Part::Nothing(Off::BySettings));
        assert_eq!(part(Enabled::On, &daemon, true), Part::All);
        let kernel = Others { lru_gen: Some(true), min_ttl_ms: Some(1000), ..Others::default() };
        assert_eq!(auto(kernel, true), Part::Nothing(Off::MinTtl { ms: 1000 }), "the kernel is not blinded");
        assert_eq!(auto(Others::default(), true), Part::All);
    }

    #[test]
    fn the_kernel_does_it_only_with_generations() {
        let off =
            |lru_gen, ms| off(Enabled::Auto, &Others { lru_gen, min_ttl_ms: Some(ms), ..Others::default() });
        assert_eq!(off(Some(true), 1000), Some(Off::MinTtl { ms: 1000 }));
        assert_eq!([off(Some(false), 1000), off(None, 1000), off(Some(true), 0)], [None; 3]);
    }

    #[test]
    fn the_settings_count_first() {
        let others = Others { daemon: Some("earlyoom"), lru_gen: Some(true), min_ttl_ms: Some(1000) };
        assert_eq!(off(Enabled::Auto, &others), Some(Off::Daemon("earlyoom")));
        assert_eq!(off(Enabled::On, &others), None);
        assert_eq!(off(Enabled::Off, &Others::default()), Some(Off::BySettings));
    }

    #[test]
    fn names_are_as_long_as_the_kernel_keeps_them() {
        assert!(DAEMONS.iter().all(|name| name.len() <= 15));
    }
}

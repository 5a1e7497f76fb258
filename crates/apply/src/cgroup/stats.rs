//! What a group uses (Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst).

use eke_model::sample::Pressure;
use eke_model::units::Bytes;

use super::{Hierarchy, Located};
use eke_linux::error::{Error, Result};
use eke_linux::parse;

/// Number of a group's processes that the kernel killed because the group was at its limit.
pub type Oom = u64;

/// Counters of a group since its creation, and what it uses now.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GroupStats {
    /// Memory charged to it: its own pages, page cache, kernel memory, and on cgroup v2 its share of zswap's pool.
    pub usage: Bytes,
    /// The maximum of `usage` (v1; v2 since Linux 5.19).
    pub peak_usage: Option<Bytes>,
    /// Its memory limit; `None` without one.
    pub limit: Option<Bytes>,
    /// Uncompressed size of its pages in swap. On cgroup v1, 0 if the kernel does not account swap (`swapaccount=0`).
    pub swapped: Bytes,
    /// Kills at its limit (`memory.oom_control`, Linux 4.13; `memory.events`).
    pub oom_kills: Oom,
    /// Page faults that waited for swap or a disk.
    pub major_faults: u64,
    /// Pages swapped in and out, zswap included (v2 since Linux 6.12; v1 does not count them per group).
    pub swap_pages: Option<(u64, u64)>,
    /// Stalls of its processes on memory, if the kernel counts them per group (`CONFIG_PSI`, unified hierarchy).
    pub pressure: Option<Pressure>,
}

pub(super) fn read(at: &Located) -> Result<GroupStats> {
    let mut stats = match at.hierarchy {
        Hierarchy::V1 => read_v1(at)?,
        Hierarchy::V2 => read_v2(at)?,
    };
    let pressure = at.unified_dir().and_then(|dir| at.root.read(format!("{dir}/memory.pressure")).ok());
    stats.pressure = pressure.and_then(|text| parse::pressure::parse(&text));
    Ok(stats)
}

fn read_v1(at: &Located) -> Result<GroupStats> {
    let stat = text(at, "memory.stat")?;
    Ok(GroupStats {
        usage: usage_v1(at)?,
        peak_usage: number(at, "memory.max_usage_in_bytes").ok().map(Bytes),
        limit: parse::groups::limit(&text(at, "memory.limit_in_bytes")?).map(Bytes),
        swapped: Bytes(parse::keyed::count(&stat, "total_swap").unwrap_or(0)),
        oom_kills: parse::keyed::count(&text(at, "memory.oom_control")?, "oom_kill").unwrap_or(0),
        major_faults: parse::keyed::count(&stat, "total_pgmajfault").unwrap_or(0),
        swap_pages: None,
        pressure: None,
    })
}

pub(super) fn usage_v1(at: &Located) -> Result<Bytes> {
    number(at, "memory.usage_in_bytes").map(Bytes)
}

fn read_v2(at: &Located) -> Result<GroupStats> {
    let stat = text(at, "memory.stat")?;
    Ok(GroupStats {
        usage: Bytes(number(at, "memory.current")?),
        peak_usage: number(at, "memory.peak").ok().map(Bytes),
        limit: parse::groups::limit(&text(at, "memory.max")?).map(Bytes),
        swapped: Bytes(number(at, "memory.swap.current").unwrap_or(0)),
        oom_kills: parse::keyed::count(&text(at, "memory.events")?, "oom_kill").unwrap_or(0),
        major_faults: parse::keyed::count(&stat, "pgmajfault").unwrap_or(0),
        swap_pages: swap_pages(&stat),
        pressure: None,
    })
}

/// Swap traffic in cgroup v2's `memory.stat`: `pswpin` and `pswpout` (Linux 6.12) exclude zswap, so its counters are
/// added.
fn swap_pages(stat: &str) -> Option<(u64, u64)> {
    let key = |name| parse::keyed::count(stat, name);
    let (read, written) = (key("pswpin")?, key("pswpout")?);
    let with = |pages: u64, name| pages.saturating_add(key(name).unwrap_or(0));
    Some((with(read, "zswpin"), with(written, "zswpout")))
}

fn text(at: &Located, file: &str) -> Result<String> {
    at.root.read(format!("{}/{file}", at.dir()))
}

fn number(at: &Located, file: &str) -> Result<u64> {
    let text = text(at, file)?;
    text.trim().parse().map_err(|_| Error::Malformed {
        path: at.root.path(format!("{}/{file}", at.dir())),
        message: format!("expected a number of bytes, found \"{}\"", text.trim()),
    })
}

#[cfg(test)]
mod tests {
    use super::swap_pages;

    #[test]
    fn swap_traffic_is_known_only_where_the_kernel_counts_it() {
        assert_eq!(swap_pages("anon 1\nzswpin 4\nzswpout 5\npswpin 10\npswpout 20\n"), Some((14, 25)));
        assert_eq!(swap_pages("anon 1\nzswpin 4\nzswpout 5\n"), None);
    }
}

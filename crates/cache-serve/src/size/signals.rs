//! Reads the memory of the machine and of this process's cgroups.

use eke_cache_policy::size::{Group, Machine, Signals};
use eke_linux::cgroup::Hierarchy;
use eke_linux::error::Result;
use eke_linux::{Root, parse};
use eke_model::units::{Bytes, PageSize};

use super::groups::{self, GroupDir};

/// Samples between two searches for the cgroups: a process can be moved.
const REFRESH_GROUPS: u32 = 20;

/// Reads [`Signals`]. Remembers the directories of the cgroups.
#[derive(Debug)]
pub struct SignalsReader {
    root: Root,
    groups: Vec<GroupDir>,
    samples: u32,
}

impl SignalsReader {
    /// For the machine at `root`.
    pub fn new(root: Root) -> Self {
        Self { root, groups: Vec::new(), samples: 0 }
    }

    /// Reads a sample. A cgroup that cannot be read counts as unlimited.
    ///
    /// # Errors
    /// `/proc/meminfo` or `/proc/vmstat` cannot be read.
    pub fn read(&mut self) -> Result<Signals> {
        if self.samples % REFRESH_GROUPS == 0 {
            let cgroup = self.root.read("proc/self/cgroup").unwrap_or_default();
            let mountinfo = self.root.read_bytes("proc/self/mountinfo").unwrap_or_default();
            self.groups = groups::own(&cgroup, &mountinfo);
        }
        self.samples = self.samples.wrapping_add(1);
        Ok(Signals {
            machine: machine(
                &self.root.read("proc/meminfo")?,
                &self.root.read("proc/vmstat")?,
                self.root.page_size(),
            ),
            groups: self.groups.iter().filter_map(|dir| group(&self.root, dir)).collect(),
        })
    }
}

/// `pgpgin` is in KiB, whatever the page size (`all_vm_events` in mm/vmstat.c), and has what was swapped in, from zram too (`submit_bio`).
fn machine(meminfo: &str, vmstat: &str, page: PageSize) -> Machine {
    let (memory, vm) = (parse::meminfo::parse(meminfo), parse::vmstat::parse(vmstat));
    Machine {
        total: memory.total,
        available: memory.available,
        free: memory.free,
        swap_free: memory.swap_free,
        swapped_out: sum([vm.pswpout, vm.zswpout]),
        read: Bytes(parse::keyed::count(vmstat, "pgpgin").unwrap_or(0).saturating_mul(1024))
            .saturating_sub(Bytes(vm.pswpin.saturating_mul(page.bytes()))),
        refaulted: Bytes(vm.refault_file.saturating_mul(page.bytes())),
    }
}

fn group(root: &Root, dir: &GroupDir) -> Option<Group> {
    let text = |file: &str| root.read(format!("{}/{file}", dir.path)).ok();
    let number = |file: &str| text(file).and_then(|t| parse::groups::limit(&t));
    let (limit, usage, prefix) = match dir.hierarchy {
        Hierarchy::V2 => (least(number("memory.max"), number("memory.high"))?, number("memory.current")?, ""),
        Hierarchy::V1 => (number("memory.limit_in_bytes")?, number("memory.usage_in_bytes")?, "total_"),
    };
    let stat = text("memory.stat")?;
    // As in `MemAvailable`, half of the slab that can be reclaimed is not in use. cgroup v1 does not tell.
    let slab = parse::keyed::count(&stat, "slab_reclaimable").unwrap_or(0) / 2;
    let used = usage.saturating_sub(droppable(&stat, prefix)).saturating_sub(slab);
    Some(Group { path: dir.path.clone(), limit: Bytes(limit), used: Bytes(used), usage: Bytes(usage) })
}

fn least(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a.into_iter().chain(b).min()
}

/// Bytes of clean file pages (cgroup-v2.rst; in cgroup-v1/memory.rst the sums over the descendants have the prefix `total_`). Pages of
/// tmpfs are not among them.
fn droppable(stat: &str, prefix: &str) -> u64 {
    let key = |name: &str| parse::keyed::count(stat, &format!("{prefix}{name}")).unwrap_or(0);
    let unclean = sum(["file_dirty", "file_writeback", "dirty", "writeback"].map(key));
    sum(["inactive_file", "active_file"].map(key)).saturating_sub(unclean)
}

fn sum<const N: usize>(counts: [u64; N]) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fake(files: &[(&str, &str)]) -> (tempfile::TempDir, SignalsReader) {
        let dir = tempfile::tempdir().unwrap();
        files.iter().for_each(|(path, text)| eke_testkit::tree::put(dir.path(), path, text));
        let reader = SignalsReader::new(Root::at(dir.path()));
        (dir, reader)
    }

    const MEMINFO: (&str, &str) = (
        "proc/meminfo",
        "MemTotal: 1024000 kB\nMemFree: 2048 kB\nMemAvailable: 102400 kB\nSwapTotal: 9 kB\nSwapFree: 4 kB\n",
    );
    const VMSTAT: (&str, &str) =
        ("proc/vmstat", "pgpgin 300\npswpin 5\npswpout 7\nzswpin 1\nzswpout 2\nworkingset_refault_file 2\n");

    #[test]
    fn cgroups_of_v2_have_the_lower_of_two_limits_and_clean_file_pages_are_not_used() {
        let (_dir, mut reader) = fake(&[
            MEMINFO,
            VMSTAT,
            ("proc/self/cgroup", "0::/a/b\n"),
            ("proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/b/memory.high", "max\n"),
            ("sys/fs/cgroup/a/memory.max", "104857600\n"),
            ("sys/fs/cgroup/a/memory.high", "52428800\n"),
            ("sys/fs/cgroup/a/memory.current", "41943040\n"),
            (
                "sys/fs/cgroup/a/memory.stat",
                "anon 1\ninactive_file 10485760\nactive_file 1048576\nfile_dirty 3145728\nslab_reclaimable 4194304\n",
            ),
        ]);
        let signals = reader.read().unwrap();
        assert_eq!(signals.machine.available, Bytes::mib(100));
        assert_eq!((signals.machine.free, signals.machine.swapped_out), (Bytes::mib(2), 9));
        let page = Root::host().page_size().bytes();
        assert_eq!(
            (signals.machine.read, signals.machine.refaulted),
            (Bytes((300 << 10) - 5 * page), Bytes(2 * page))
        );
        let [group] = &signals.groups[..] else { unreachable!("{signals:?}") };
        assert_eq!(
            (group.limit, group.used, group.headroom()),
            (Bytes::mib(50), Bytes::mib(30), Bytes::mib(20))
        );
    }

    #[test]
    fn cgroups_of_v1_count_their_descendants() {
        let (_dir, mut reader) = fake(&[
            MEMINFO,
            VMSTAT,
            ("proc/self/cgroup", "4:memory:/a\n0::/\n"),
            ("proc/self/mountinfo", "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"),
            ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "104857600\n"),
            ("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "94371840\n"),
            (
                "sys/fs/cgroup/memory/a/memory.stat",
                "inactive_file 1\ntotal_inactive_file 41943040\ntotal_dirty 1048576\n",
            ),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        let signals = reader.read().unwrap();
        let [group] = &signals.groups[..] else { unreachable!("{signals:?}") };
        assert_eq!(group.headroom(), Bytes::mib(49));
    }

    #[test]
    fn without_meminfo_there_is_nothing_to_decide_from() {
        let (_dir, mut reader) = fake(&[VMSTAT]);
        assert!(reader.read().unwrap_err().to_string().contains("proc/meminfo"));
    }
}

//! CPU time by program, and of eke's processes by thread name.

use std::collections::BTreeMap;

use eke_linux::parse::process_stat::{ProcessStat, parse};
use eke_linux::{Root, read};

/// Clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ticks {
    /// Ticks in user mode.
    pub user: u64,
    /// Ticks in the kernel.
    pub system: u64,
}

impl Ticks {
    /// `USER_HZ`, the same on all supported machines.
    pub const PER_SECOND: f64 = 100.0;

    /// User and system ticks together.
    pub fn sum(self) -> u64 {
        self.user + self.system
    }
}

impl std::ops::AddAssign for Ticks {
    fn add_assign(&mut self, other: Self) {
        self.user += other.user;
        self.system += other.system;
    }
}

impl std::ops::Sub for Ticks {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
        }
    }
}

/// The CPU time of a box so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cpu {
    /// By process name.
    pub programs: BTreeMap<String, Ticks>,
    /// By thread name, in processes whose names begin with [`FILE_SERVER`].
    pub threads: BTreeMap<String, Ticks>,
    /// Of kernel threads on the whole machine: block layer, decompression of btrfs.
    pub kernel: Ticks,
}

/// The start of the process names of eke's file server. Its threads are named by their tasks.
pub const FILE_SERVER: &str = "eke-cache";

impl Cpu {
    /// Reads the CPU time of these processes. Those that end meanwhile count nothing.
    pub fn of(root: &Root, pids: &[u32]) -> Self {
        let mut cpu = Self::default();
        for pid in pids {
            let text = root.read(format!("proc/{pid}/stat")).unwrap_or_default();
            let Some(process) = parse(&text) else { continue };
            *cpu.programs.entry(process.name.to_owned()).or_default() += own(&process);
            if process.name.starts_with(FILE_SERVER) {
                cpu.add_threads(root, *pid);
            }
        }
        cpu.kernel = of_the_kernel(root);
        cpu
    }

    /// Reads the CPU time of this process.
    pub fn of_this_process() -> Ticks {
        let text = Root::host().read("proc/self/stat").unwrap_or_default();
        parse(&text).map(|p| own(&p)).unwrap_or_default()
    }

    fn add_threads(&mut self, root: &Root, pid: u32) {
        for tid in root.list(format!("proc/{pid}/task")).unwrap_or_default() {
            let text = root.read(format!("proc/{pid}/task/{tid}/stat")).unwrap_or_default();
            if let Some(thread) = parse(&text) {
                *self.threads.entry(kind(thread.name).to_owned()).or_default() += own(&thread);
            }
        }
    }

    /// The ticks of all programs.
    pub fn box_ticks(&self) -> Ticks {
        let mut all = Ticks::default();
        self.programs.values().for_each(|ticks| all += *ticks);
        all
    }

    /// The CPU time between two readings.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            programs: difference(&self.programs, &before.programs),
            threads: difference(&self.threads, &before.threads),
            kernel: self.kernel - before.kernel,
        }
    }
}

fn difference(now: &BTreeMap<String, Ticks>, before: &BTreeMap<String, Ticks>) -> BTreeMap<String, Ticks> {
    let of = |(name, ticks): (&String, &Ticks)| {
        (name.clone(), *ticks - before.get(name).copied().unwrap_or_default())
    };
    now.iter().map(of).collect()
}

/// The task of a thread: `session-3` and `session-4` do the same.
fn kind(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-' || c == ' ')
}

/// The children of kthreadd (process 2).
fn of_the_kernel(root: &Root) -> Ticks {
    let mut all = Ticks::default();
    for pid in read::pids(root) {
        let text = root.read(format!("proc/{pid}/stat")).unwrap_or_default();
        if let Some(process) = parse(&text).filter(|p| p.parent == 2) {
            all += own(&process);
        }
    }
    all
}

fn own(stat: &ProcessStat<'_>) -> Ticks {
    Ticks { user: stat.user_ticks, system: stat.system_ticks }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_a_kind_are_summed_and_new_programs_count_from_zero() {
        let threads = ["session-0", "session-12", "compress", "0"];
        assert_eq!(threads.map(kind), ["session", "session", "compress", ""]);
        let of = |user| Cpu {
            programs: [("nginx".to_owned(), Ticks { user, system: 1 })].into(),
            ..Cpu::default()
        };
        let since = of(7).since(&of(5));
        assert_eq!(since.box_ticks(), Ticks { user: 2, system: 0 });
        assert_eq!(of(7).since(&Cpu::default()).box_ticks().sum(), 8);
    }

    #[test]
    fn this_process_has_a_name_and_time() {
        let cpu = Cpu::of(&Root::host(), &[std::process::id()]);
        assert_eq!(cpu.programs.len(), 1, "{cpu:?}");
    }
}

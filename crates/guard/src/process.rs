//! Processes as data, and how much memory each had some time ago.

use std::collections::{BTreeMap, VecDeque};

use eke_model::process::ProcessId;
use eke_model::units::Bytes;

/// One process of a user program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Which.
    pub id: ProcessId,
    /// Its parent's pid.
    pub parent: u32,
    /// Its process group: a job of a shell.
    pub group: u32,
    /// Its session.
    pub session: u32,
    /// Its effective user.
    pub user: u32,
    /// Whether root started it and chose its name: its real user is root, too, and its program is not set-user-id.
    pub is_roots: bool,
    /// The kernel's name of it (`comm`), which it can choose itself.
    pub name: String,
    /// File name of its executable if that belongs to root, who alone can replace it.
    pub trusted_program: Option<String>,
    /// Its anonymous memory, in RAM and in swap.
    pub size: Bytes,
    /// `oom_score_adj`. Only root can lower it.
    pub oom_score_adj: i32,
    /// Its group in the unified hierarchy of control groups, without the first `/`; empty for the root group.
    pub control_group: String,
}

/// Ages of the tables that growth is compared with.
const AGES_MS: [u64; 3] = [10_000, 60_000, 600_000];
/// A table this soon after the last one adds nothing.
const APART_MS: u64 = 5_000;

/// What every process had at a time.
#[derive(Debug, Default)]
struct Table {
    at_ms: u64,
    sizes: BTreeMap<ProcessId, Bytes>,
}

/// Tables of the last ten minutes, oldest first.
#[derive(Debug, Default)]
pub struct History(VecDeque<Table>);

impl History {
    /// Keeps the sizes of all processes at this time, unless the last ones are fresh.
    pub fn push(&mut self, at_ms: u64, processes: &[Process]) {
        if self.0.back().is_some_and(|last| at_ms.saturating_sub(last.at_ms) < APART_MS) {
            return;
        }
        let sizes = processes.iter().map(|p| (p.id, p.size)).collect();
        self.0.push_back(Table { at_ms, sizes });
        self.thin(at_ms);
    }

    /// Keeps two minutes in steps of five seconds, and what is older in steps of a minute.
    fn thin(&mut self, now_ms: u64) {
        let mut kept_ms = None::<u64>;
        self.0.retain(|table| {
            let age_ms = now_ms.saturating_sub(table.at_ms);
            let step_ms = if age_ms > 120_000 { 60_000 } else { APART_MS };
            let keep = age_ms <= AGES_MS[2] + 60_000
                && kept_ms.is_none_or(|kept| table.at_ms.saturating_sub(kept) >= step_ms);
            kept_ms = if keep { Some(table.at_ms) } else { kept_ms };
            keep
        });
    }

    /// By how much a process grew within the last 10 s, minute and ten minutes. A process that is younger than a table has
    /// grown from nothing; without a table that old, the oldest one counts.
    pub fn growth(&self, process: &Process, now_ms: u64) -> [Bytes; 3] {
        AGES_MS.map(|age_ms| {
            let old = |t: &&Table| now_ms.saturating_sub(t.at_ms) >= age_ms;
            let then = self.0.iter().rev().find(old).or(self.0.front());
            let had = then.and_then(|t| t.sizes.get(&process.id)).copied().unwrap_or_default();
            process.size.saturating_sub(had)
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A process of user 1000 with `mib` of memory, in a session of its own.
    pub(crate) fn process(pid: u32, name: &str, mib: u64) -> Process {
        Process {
            id: ProcessId { pid, start_ticks: u64::from(pid) },
            parent: 1,
            group: pid,
            session: 7,
            user: 1000,
            is_roots: false,
            name: name.into(),
            trusted_program: Some(name.into()),
            size: Bytes::mib(mib),
            oom_score_adj: 0,
            control_group: "user.slice/user-1000.slice/session-1.scope".into(),
        }
    }

    #[test]
    fn growth_is_against_each_age() {
        let mut history = History::default();
        history.push(0, &[process(5, "a", 10)]);
        history.push(590_000, &[process(5, "a", 50)]);
        history.push(595_000, &[process(5, "a", 60)]);
        let growth = history.growth(&process(5, "a", 100), 600_000);
        assert_eq!(growth, [50, 90, 90].map(Bytes::mib));
        assert_eq!(history.growth(&process(6, "new", 9), 600_000), [Bytes::mib(9); 3]);
        assert_eq!(history.growth(&process(5, "a", 5), 600_000), [Bytes(0); 3], "it shrank");
    }

    #[test]
    fn the_history_stays_small() {
        let mut history = History::default();
        (0..3_000).for_each(|s| history.push(s * 1_000, &[process(5, "a", 10)]));
        assert!((30..=40).contains(&history.0.len()), "{}", history.0.len());
        let last = history.0.back().unwrap().at_ms;
        assert!(history.0.iter().any(|t| last - t.at_ms >= 600_000));
    }
}

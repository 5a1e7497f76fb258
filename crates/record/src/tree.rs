//! A process and its descendants: resident pages, CPU time, major faults.
//!
//! `/proc/PID/stat` of each process stays open: it is tied to its process, so that a reused number does no harm. New processes are
//! searched only after the kernel gave a new number (the last field of `/proc/loadavg`).

use std::collections::{BTreeMap, BTreeSet};

use eke_linux::{Root, read};

use crate::error::{Error, Result};
use crate::row::Row;
use eke_linux::hot_file::HotFile;
use eke_linux::parse::process_stat;

/// The fields of `/proc/PID/stat` (proc_pid_stat(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Stat {
    ended: bool,
    parent: u32,
    /// Its own and that of its reaped children.
    ticks: u64,
    major_faults: u64,
    rss_pages: u64,
}

#[derive(Debug)]
struct Process {
    file: HotFile,
    last: Stat,
}

/// The processes that are recorded.
#[derive(Debug)]
pub struct Tree {
    root: Root,
    top: u32,
    loadavg: Option<HotFile>,
    newest: String,
    processes: BTreeMap<u32, Process>,
    others: BTreeSet<u32>,
    /// The counters of ended processes whose parent is not in the tree: no parent's counters include them.
    gone: Stat,
    most: Stat,
}

impl Tree {
    /// The tree below `top`.
    ///
    /// # Errors
    /// [`Error::NoProcess`].
    pub fn new(root: &Root, top: u32) -> Result<Self> {
        let process = open(root, top).ok_or(Error::NoProcess(top))?;
        Ok(Self {
            root: root.clone(),
            top,
            loadavg: HotFile::open_short(&root.path("proc/loadavg")).ok(),
            newest: String::new(),
            processes: BTreeMap::from([(top, process)]),
            others: BTreeSet::new(),
            gone: Stat::default(),
            most: Stat::default(),
        })
    }

    /// True if the first process has ended.
    pub fn is_over(&self) -> bool {
        self.processes.get(&self.top).is_none_or(|p| p.last.ended)
    }

    /// Fills the columns of the tree.
    pub fn read_into(&mut self, row: &mut Row) {
        self.find_new();
        self.read_all();
        let sum = self.processes.values().fold(self.gone, |sum, p| sum.plus(&p.last));
        // the counters of an unreaped process are lost
        self.most.ticks = self.most.ticks.max(sum.ticks);
        self.most.major_faults = self.most.major_faults.max(sum.major_faults);
        let ticks_per_s = rustix::param::clock_ticks_per_second().max(1);
        row.tree_rss_bytes = Some(sum.rss_pages.saturating_mul(rustix::param::page_size() as u64));
        row.tree_processes = Some(self.processes.values().filter(|p| !p.last.ended).count() as u64);
        row.tree_cpu_ms = Some(self.most.ticks.saturating_mul(1000) / ticks_per_s);
        row.tree_major_faults = Some(self.most.major_faults);
    }

    fn read_all(&mut self) {
        let mut ended = Vec::new();
        for (pid, process) in &mut self.processes {
            match process.file.start().ok().and_then(|text| parse(&text)) {
                Some(stat) => process.last = stat,
                None => ended.push(*pid),
            }
        }
        let ended: Vec<Process> = ended.iter().filter_map(|pid| self.processes.remove(pid)).collect();
        for process in ended {
            if !self.processes.contains_key(&process.last.parent) {
                self.gone = self.gone.plus(&Stat { rss_pages: 0, ..process.last });
            }
        }
    }

    fn find_new(&mut self) {
        if let Some(text) = self.loadavg.as_mut().and_then(|f| f.start().ok()) {
            let newest = text.split_whitespace().next_back().unwrap_or_default();
            if newest == self.newest {
                return;
            }
            self.newest = newest.to_owned();
        }
        let all = read::pids(&self.root);
        let known = |pid: &u32| self.processes.contains_key(pid) || self.others.contains(pid);
        let new: Vec<u32> = all.iter().copied().filter(|pid| !known(pid)).collect();
        self.others.retain(|pid| all.binary_search(pid).is_ok());
        self.sort_in(new);
    }

    /// Parents usually have lower numbers; after the numbers wrap, another pass finds the children.
    fn sort_in(&mut self, new: Vec<u32>) {
        let opened = new.into_iter().filter_map(|pid| Some((pid, open(&self.root, pid)?)));
        let mut new: BTreeMap<u32, Process> = opened.collect();
        loop {
            let is_ours = |p: &Process| self.processes.contains_key(&p.last.parent);
            let ours: Vec<u32> = new.iter().filter(|(_, p)| is_ours(p)).map(|(pid, _)| *pid).collect();
            if ours.is_empty() {
                break;
            }
            for pid in ours {
                self.processes.extend(new.remove(&pid).map(|p| (pid, p)));
            }
        }
        self.others.extend(new.keys());
    }
}

impl Stat {
    fn plus(self, other: &Self) -> Self {
        Self {
            ended: false,
            parent: 0,
            ticks: self.ticks.saturating_add(other.ticks),
            major_faults: self.major_faults.saturating_add(other.major_faults),
            rss_pages: self.rss_pages.saturating_add(other.rss_pages),
        }
    }
}

fn open(root: &Root, pid: u32) -> Option<Process> {
    let mut file = HotFile::open_short(&root.path(format!("proc/{pid}/stat"))).ok()?;
    let last = parse(&file.start().ok()?)?;
    Some(Process { file, last })
}

fn parse(text: &str) -> Option<Stat> {
    let stat = process_stat::parse(text)?;
    Some(Stat {
        ended: stat.has_ended(),
        parent: stat.parent,
        ticks: stat.ticks().saturating_add(stat.children_ticks),
        major_faults: stat.major_faults.saturating_add(stat.children_major_faults),
        rss_pages: stat.resident_pages,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use eke_testkit::tree::put;

    fn stat(pid: u32, parent: u32, state: &str, ticks: u64, rss: u64) -> String {
        format!("{pid} (a) (b) {state} {parent} 1 1 0 -1 0 0 0 2 3 {ticks} 0 0 0 20 0 1 0 99 1000 {rss} 0\n")
    }

    fn at(dir: &std::path::Path, pid: u32, parent: u32, ticks: u64) {
        put(dir, &format!("proc/{pid}/stat"), &stat(pid, parent, "S", ticks, 10));
    }

    #[test]
    fn it_counts_descendants_only_and_keeps_the_counters_of_ended_ones() {
        let dir = tempfile::tempdir().unwrap();
        at(dir.path(), 10, 1, 5);
        at(dir.path(), 11, 1, 1000);
        put(dir.path(), "proc/loadavg", "0 0 0 1/2 11\n");
        let mut tree = Tree::new(&Root::at(dir.path()), 10).unwrap();
        let mut row = Row::default();
        tree.read_into(&mut row);
        assert_eq!(
            (row.tree_processes, row.tree_cpu_ms, row.tree_major_faults),
            (Some(1), Some(50), Some(5))
        );
        // the numbers wrapped: the child's child has a lower one
        at(dir.path(), 20, 10, 7);
        at(dir.path(), 3, 20, 1);
        put(dir.path(), "proc/loadavg", "0 0 0 1/2 3\n");
        tree.read_into(&mut row);
        assert_eq!((row.tree_processes, row.tree_cpu_ms), (Some(3), Some(130)));
        put(dir.path(), "proc/20/stat", "");
        tree.read_into(&mut row);
        assert_eq!((row.tree_processes, row.tree_cpu_ms), (Some(2), Some(130)));
        assert!(!tree.is_over());
        put(dir.path(), "proc/10/stat", &stat(10, 1, "Z", 12, 0));
        tree.read_into(&mut row);
        assert!(tree.is_over());
    }

    #[test]
    fn no_process_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let error = Tree::new(&Root::at(dir.path()), 77).unwrap_err();
        assert_eq!(error.to_string(), "there is no process 77: nothing was recorded");
    }
}

//! Memory use by program.

use std::collections::BTreeMap;

use eke_model::units::Bytes;
use serde::Serialize;

use crate::parse::meminfo::field;
use crate::read;
use crate::root::Root;

/// All processes of one program.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Program {
    /// The name of its executable, or of the thread for a kernel thread.
    pub name: String,
    /// Number of processes.
    pub processes: usize,
    /// Its proportional share of RAM (`Pss`, Linux 2.6.25).
    pub pss: Bytes,
    /// Its proportional share of swap (`SwapPss`, Linux 4.3).
    pub swap_pss: Bytes,
    /// Memory that returns at once when it ends: its private pages (`Private_*`).
    pub private: Bytes,
}

/// Whether the processes of other users are not even listed (`hidepid`, proc(5)): the first process runs everywhere.
pub fn are_others_hidden(root: &Root) -> bool {
    !root.exists("proc/1") && root.exists("proc/self")
}

/// All programs whose processes are readable (root reads all, others their own), the largest first, and the number of
/// unreadable processes.
pub fn programs(root: &Root) -> (Vec<Program>, usize) {
    let mut by_name: BTreeMap<String, Program> = BTreeMap::new();
    let mut unreadable = 0;
    for pid in read::answering(root) {
        // Linux 4.14; empty for kernel threads
        match root.read(format!("proc/{pid}/smaps_rollup")) {
            Ok(text) if text.is_empty() => {}
            Ok(text) => add(by_name.entry(name(root, pid)).or_default(), &text),
            Err(e) if e.is_permission() => unreadable += 1,
            Err(_) => {}
        }
    }
    let mut all: Vec<Program> = by_name.into_iter().map(|(name, p)| Program { name, ..p }).collect();
    all.sort_by_key(|p| std::cmp::Reverse(p.pss + p.swap_pss));
    (all, unreadable)
}

fn add(program: &mut Program, smaps_rollup: &str) {
    let get = |key| field(smaps_rollup, key).unwrap_or_default();
    program.processes += 1;
    program.pss = program.pss + get("Pss");
    program.swap_pss = program.swap_pss + get("SwapPss");
    program.private = program.private + get("Private_Clean") + get("Private_Dirty");
}

fn name(root: &Root, pid: u32) -> String {
    let exe = std::fs::read_link(root.path(format!("proc/{pid}/exe"))).ok();
    let file = exe
        .as_ref()
        .and_then(|p| p.file_name())
        .map(|n| n.to_string_lossy().trim_end_matches(" (deleted)").to_owned());
    file.unwrap_or_else(|| root.read(format!("proc/{pid}/comm")).unwrap_or_default().trim().to_owned())
}

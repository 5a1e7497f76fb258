//! Which programs only start others. Pure, and bounded.
//!
//! A wrapper is no habit of a user: its program is. So predictors see the program's start and not the wrapper's.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::learner::Finished;
use super::recording::STARTED;
use crate::program::{Program, ProgramId};

/// The most programs that are remembered.
const MOST: usize = 512;
/// A larger program is a wrapper only if it ends before the program that it starts.
const LARGEST_BYTES: u64 = 8 << 20;
/// After this many launches in a row that start nothing, a program is no wrapper.
const MOST_MISSES: u32 = 3;

/// What a program was seen to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Starter {
    /// The bytes of its own launch.
    own_bytes: u64,
    /// Its process became another program.
    became: bool,
    /// Its processes ended within the launch.
    ended: bool,
    /// The started programs, with the bytes of their launches; 0 if unknown.
    started: Vec<(ProgramId, u64)>,
    /// Launches in a row that started nothing.
    misses: u32,
}

impl Starter {
    fn is_wrapper(&self) -> bool {
        let is_small = self.ended || self.own_bytes <= LARGEST_BYTES;
        self.became || is_small && self.started.iter().any(|(_, bytes)| *bytes > self.own_bytes)
    }
}

/// Whether an earlier eke named this program: it gave `env` the name of the program that env starts.
pub fn is_outdated(program: &Program) -> bool {
    program.exe.file_name().is_some_and(|name| name == "env") && program.script.is_some()
}

/// All programs that were seen to start others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wrappers {
    programs: BTreeMap<ProgramId, Starter>,
}

impl Wrappers {
    /// Whether the program only starts others.
    pub fn is_wrapper(&self, program: ProgramId) -> bool {
        self.programs.get(&program).is_some_and(Starter::is_wrapper)
    }

    /// Learns from a finished launch; `bytes_of` gives the bytes of known programs. Returns the programs that are wrappers from now on.
    pub fn learn(
        &mut self,
        finished: &Finished,
        bytes_of: &mut dyn FnMut(ProgramId) -> u64,
    ) -> Vec<ProgramId> {
        let before = self.all();
        let (program, bytes) = (finished.launch.program.id(), finished.launch.set.bytes());
        self.is_of_size(program, bytes);
        if !finished.started.is_empty() {
            let started = finished.started.iter().map(|id| (*id, bytes_of(*id))).collect();
            let (became, ended) = (finished.became, finished.has_ended());
            self.put(program, Starter { own_bytes: bytes, became, ended, started, misses: 0 });
        } else if let Some(starter) = self.programs.get_mut(&program) {
            starter.misses += 1;
            if starter.misses >= MOST_MISSES {
                self.programs.remove(&program);
            }
        }
        self.all().difference(&before).copied().collect()
    }

    fn is_of_size(&mut self, program: ProgramId, bytes: u64) {
        let started = self.programs.values_mut().flat_map(|starter| starter.started.iter_mut());
        started.filter(|(id, _)| *id == program).for_each(|(_, known)| *known = bytes.max(*known));
    }

    fn put(&mut self, program: ProgramId, starter: Starter) {
        if self.programs.len() < MOST || self.programs.contains_key(&program) {
            self.programs.insert(program, starter);
        }
    }

    fn all(&self) -> BTreeSet<ProgramId> {
        self.programs.iter().filter(|(_, starter)| starter.is_wrapper()).map(|(id, _)| *id).collect()
    }

    /// Forgets a program.
    pub fn forget(&mut self, program: ProgramId) {
        self.programs.remove(&program);
        self.programs.values_mut().for_each(|starter| starter.started.retain(|(id, _)| *id != program));
    }

    /// For the store.
    ///
    /// # Errors
    /// serde's.
    pub fn to_state(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(&self.programs.iter().collect::<Vec<_>>())
    }

    /// From the store; foreign bytes are none.
    pub fn from_state(bytes: &[u8]) -> Self {
        let mut programs: Vec<(ProgramId, Starter)> = serde_json::from_slice(bytes).unwrap_or_default();
        programs.iter_mut().for_each(|(_, starter)| starter.started.truncate(STARTED));
        Self { programs: programs.into_iter().take(MOST).collect() }
    }
}

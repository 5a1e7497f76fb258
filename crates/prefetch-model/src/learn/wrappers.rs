//! Which programs only start others. Pure, and bounded.
//!
//! A wrapper is no habit of a user: its program is. So predictors see the program's start and not the wrapper's.
//!
//! A user decides what a program starts (`LD_PRELOAD`, an option, a file). So what a user's launch shows counts for that user, and for all only if root's
//! launch or that of a second user shows it too.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::learner::Finished;
use super::recording::STARTED;
use crate::program::{Program, ProgramId};

/// The most programs that are remembered, each once for each user.
pub(super) const MOST: usize = 512;
/// The most users of a program; the last ones.
pub(super) const USERS: usize = 4;
/// So many users together decide for all.
const ENOUGH_USERS: usize = 2;
/// A larger program is a wrapper only if it ends before the program that it starts.
const LARGEST_BYTES: u64 = 8 << 20;
/// A program that uses more new pages of its own after it has started another one works on, as an editor beside its language server does. Waiting takes
/// a few.
const WAITING_BYTES: u64 = 128 << 10;
/// After this many launches in a row that start nothing, a program is no wrapper.
const MOST_MISSES: u32 = 3;

/// What a program was seen to start by a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Starter {
    user: u32,
    /// The bytes of its own launch.
    own_bytes: u64,
    /// Its process became another program.
    became: bool,
    /// Its processes ended within the launch.
    ended: bool,
    /// It worked on after it had started another program. An earlier eke did not see that.
    #[serde(default)]
    works_on: bool,
    /// The started programs, with the bytes of their launches; 0 if unknown.
    started: Vec<(ProgramId, u64)>,
    /// Launches in a row that started nothing.
    misses: u32,
}

impl Starter {
    fn is_wrapper(&self) -> bool {
        let is_small = self.ended || self.own_bytes <= LARGEST_BYTES;
        let only_starts = self.ended || !self.works_on;
        let starts_larger = || self.started.iter().any(|(_, bytes)| *bytes > self.own_bytes);
        is_small && (self.became || only_starts && starts_larger())
    }
}

/// Whether an earlier eke named this program: it gave `env` the name of the program that env starts.
pub fn is_outdated(program: &Program) -> bool {
    program.exe.file_name().is_some_and(|name| name == "env") && program.script.is_some()
}

/// All programs that were seen to start others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wrappers {
    /// Each user of a program once, the last one last.
    pub(super) programs: BTreeMap<ProgramId, Vec<Starter>>,
}

impl Wrappers {
    /// Whether the program only starts others when this user starts it.
    pub fn is_wrapper(&self, program: ProgramId, user: u32) -> bool {
        self.programs.get(&program).is_some_and(|starters| is_wrapper_for(starters, Some(user)))
    }

    /// The same, whoever starts it.
    pub fn is_wrapper_for_all(&self, program: ProgramId) -> bool {
        self.programs.get(&program).is_some_and(|starters| is_wrapper_for(starters, None))
    }

    /// Learns from a finished launch; `bytes_of` gives the bytes of known programs. Returns the programs that are wrappers for its user from now on.
    pub fn learn(
        &mut self,
        finished: &Finished,
        bytes_of: &mut dyn FnMut(ProgramId) -> u64,
    ) -> Vec<ProgramId> {
        let (user, program) = (finished.launch.uid, finished.launch.program.id());
        let before = self.all(user);
        let bytes = finished.launch.set.bytes();
        self.is_of_size(program, bytes);
        if finished.started.is_empty() {
            self.started_nothing(program, user);
        } else {
            let started = finished.started.iter().map(|id| (*id, bytes_of(*id))).collect();
            let (became, ended) = (finished.became, finished.has_ended);
            let works_on = finished.bytes_after_start > WAITING_BYTES;
            self.put(
                program,
                Starter { user, own_bytes: bytes, became, ended, works_on, started, misses: 0 },
            );
        }
        self.all(user).difference(&before).copied().collect()
    }

    fn started_nothing(&mut self, program: ProgramId, user: u32) {
        let Some(starters) = self.programs.get_mut(&program) else { return };
        starters.iter_mut().filter(|starter| starter.user == user).for_each(|starter| starter.misses += 1);
        starters.retain(|starter| starter.misses < MOST_MISSES);
        if starters.is_empty() {
            self.programs.remove(&program);
        }
    }

    fn is_of_size(&mut self, program: ProgramId, bytes: u64) {
        let starters = self.programs.values_mut().flatten();
        let started = starters.flat_map(|starter| starter.started.iter_mut());
        started.filter(|(id, _)| *id == program).for_each(|(_, known)| *known = bytes.max(*known));
    }

    fn put(&mut self, program: ProgramId, starter: Starter) {
        if let Some(starters) = self.programs.get_mut(&program) {
            starters.retain(|other| other.user != starter.user);
            starters.push(starter);
            let over = starters.len().saturating_sub(USERS);
            starters.drain(..over);
        } else {
            self.programs.insert(program, vec![starter]);
        }
        if self.programs.values().map(Vec::len).sum::<usize>() > MOST {
            self.drop_one(program);
        }
    }

    /// Drops one program of the user with the most, so that no user takes the room of the others.
    fn drop_one(&mut self, spared: ProgramId) {
        let mut counts = BTreeMap::<u32, usize>::new();
        self.programs.values().flatten().for_each(|starter| *counts.entry(starter.user).or_default() += 1);
        let Some((most, _)) = counts.into_iter().max_by_key(|(_, count)| *count) else { return };
        let is_of = |starter: &Starter| starter.user == most;
        let found = self.programs.iter().find(|(id, starters)| **id != spared && starters.iter().any(is_of));
        let Some(id) = found.map(|(id, _)| *id) else { return };
        if let Some(starters) = self.programs.get_mut(&id) {
            starters.retain(|starter| !is_of(starter));
        }
        self.programs.retain(|_, starters| !starters.is_empty());
    }

    fn all(&self, user: u32) -> BTreeSet<ProgramId> {
        self.programs.keys().filter(|id| self.is_wrapper(**id, user)).copied().collect()
    }

    /// Forgets a program.
    pub fn forget(&mut self, program: ProgramId) {
        self.programs.remove(&program);
        let starters = self.programs.values_mut().flatten();
        starters.for_each(|starter| starter.started.retain(|(id, _)| *id != program));
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
        let mut programs: Vec<(ProgramId, Vec<Starter>)> = serde_json::from_slice(bytes).unwrap_or_default();
        let mut room = MOST;
        for (_, starters) in &mut programs {
            starters.truncate(USERS.min(room));
            starters.iter_mut().for_each(|starter| starter.started.truncate(STARTED));
            room -= starters.len();
        }
        Self { programs: programs.into_iter().filter(|(_, starters)| !starters.is_empty()).collect() }
    }
}

/// Whether these show a wrapper: for a user, or for all.
fn is_wrapper_for(starters: &[Starter], user: Option<u32>) -> bool {
    let mut users = starters.iter().filter(|starter| starter.is_wrapper()).map(|starter| starter.user);
    users.clone().any(|by| by == 0 || Some(by) == user) || users.nth(ENOUGH_USERS - 1).is_some()
}

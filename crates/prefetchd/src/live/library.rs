//! What is kept, as the process uses it: a store that cannot be written must not end the rest.

use std::collections::BTreeMap;
use std::path::Path;

use eke_linux::Root;

use super::clock::unix_s;
use super::notice::Notice;
use super::options::Options;
use eke_prefetch_model::happened::Happened;
use eke_prefetch_model::launch::Launch;
use eke_prefetch_model::learn::{self, Now, unite};
use eke_prefetch_model::program::{Program, ProgramId};
use eke_prefetch_store as store;
use eke_prefetch_store::{After, Decision, DecisionId, Keep};

/// Where is kept what cannot be kept where it should: gone with the boot.
const INSTEAD: &str = "run/eke/prefetch";
/// Launches and events that wait to be written.
const MOST_WAITING: usize = 1_024;

/// The store, and what of it is asked at each exec.
#[derive(Debug)]
pub(super) struct Library {
    keep: Option<Keep>,
    programs: BTreeMap<ProgramId, learn::Known>,
    events: Vec<Happened>,
    seen: Vec<store::Seen>,
    version: i64,
    is_damaged: bool,
    notices: Vec<Notice>,
}

impl Library {
    /// Opens the store, or one in memory instead. What went wrong is in [`Self::take_notices`].
    pub fn open(root: &Root, options: &Options, now: Now) -> Self {
        let mut library = Self {
            keep: None,
            programs: BTreeMap::new(),
            events: Vec::new(),
            seen: Vec::new(),
            version: 0,
            is_damaged: false,
            notices: Vec::new(),
        };
        let boot = root.read("proc/sys/kernel/random/boot_id").unwrap_or_default();
        for dir in [options.store.clone(), root.path(INSTEAD)] {
            if library.keep.is_none() {
                library.open_in(&dir, boot.trim(), now);
            }
        }
        library.load(now);
        library
    }

    fn open_in(&mut self, dir: &Path, boot: &str, now: Now) {
        match Keep::open(dir, boot, unix_s(now)) {
            Ok(opened) => {
                self.notices
                    .extend(opened.set_aside.map(|aside| Notice::Trouble { what: aside.to_string() }));
                self.keep = Some(opened.keep);
            }
            Err(e) => self.notices.push(Notice::Trouble { what: e.to_string() }),
        }
    }

    fn load(&mut self, now: Now) {
        let records = self.with(|keep| keep.records(unix_s(now))).unwrap_or_default();
        self.programs = records
            .iter()
            .map(|record| (record.id(), learn::Known { learned: record.learned, ..learn::Known::default() }))
            .collect();
        self.version = self.with(|keep| keep.version_of_others()).unwrap_or_default();
    }

    /// Somebody else changed the file (`eke prefetch forget`): what is known is read again; the programs that are not any more.
    pub fn refresh(&mut self, now: Now) -> Vec<ProgramId> {
        let version = self.with(|keep| keep.version_of_others()).unwrap_or(self.version);
        if version == self.version {
            return Vec::new();
        }
        let before: Vec<ProgramId> = self.programs.keys().copied().collect();
        self.load(now);
        before.into_iter().filter(|id| !self.programs.contains_key(id)).collect()
    }

    /// The notices since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// The file.
    pub fn path(&self) -> Option<&Path> {
        self.keep.as_ref().map(Keep::path)
    }

    /// How many programs are known.
    pub fn len(&self) -> usize {
        self.programs.len()
    }

    /// What is known of a program that is executed.
    pub fn known(&self, id: ProgramId) -> Option<learn::Known> {
        self.programs.get(&id).copied()
    }

    /// A program with its files.
    pub fn program(&mut self, id: ProgramId, now: Now) -> Option<store::Known> {
        self.with(|keep| keep.known(id, unix_s(now))).flatten()
    }

    /// Files of a program are others now: it is learned again.
    pub fn changed(&mut self, id: ProgramId) {
        if let Some(known) = self.programs.get_mut(&id) {
            known.changed = true;
        }
    }

    /// Keeps a launch; files and bytes of the program's set now.
    pub fn learned(&mut self, launch: &Launch, now: Now) -> Option<(usize, u64)> {
        let id = launch.program.id();
        let known = self.program(id, now);
        let learned = known.as_ref().map_or(0, |known| known.record.learned);
        let set = unite(known.as_ref().map(|known| &known.set), learned, launch);
        self.with(|keep| keep.learned(launch, &set, unix_s(now)))?;
        self.programs.insert(id, learn::Known { learned: learned + 1, ..learn::Known::default() });
        Some((set.files.len(), set.bytes()))
    }

    /// A launch of a known program that is not learned.
    pub fn seen(&mut self, program: &Program, now: Now) {
        if self.seen.len() < MOST_WAITING {
            self.seen.push(store::Seen { id: program.id(), at_s: unix_s(now) });
        }
    }

    /// Something happened.
    pub fn happened(&mut self, happened: Happened) {
        if self.events.len() < MOST_WAITING {
            self.events.push(happened);
        }
    }

    /// Writes what waits.
    pub fn flush(&mut self, now: Now) {
        let (events, seen) = (std::mem::take(&mut self.events), std::mem::take(&mut self.seen));
        if !events.is_empty() {
            self.with(|keep| keep.happened(&events));
        }
        if !seen.is_empty() {
            self.with(|keep| keep.seen(&seen, unix_s(now)));
        }
    }

    /// Keeps decisions; their numbers, or none for all if they cannot be kept.
    pub fn decided(&mut self, decisions: &[Decision]) -> Vec<DecisionId> {
        self.with(|keep| keep.decided(decisions)).unwrap_or_default()
    }

    /// What became of one.
    pub fn after(&mut self, decision: DecisionId, after: After) {
        self.with(|keep| keep.after(decision, after));
    }

    /// A state that was put once.
    pub fn state(&mut self, name: &str, version: u32) -> Option<Vec<u8>> {
        self.with(|keep| keep.state(name, version)).flatten()
    }

    /// Keeps a state.
    pub fn put_state(&mut self, name: &str, version: u32, bytes: &[u8]) {
        self.with(|keep| keep.put_state(name, version, bytes));
    }

    /// Uses the store. A failure becomes a notice, and the rest goes on; opening a damaged store anew sets it aside.
    fn with<T>(&mut self, act: impl FnOnce(&mut Keep) -> store::Result<T>) -> Option<T> {
        let e = match act(self.keep.as_mut()?) {
            Ok(done) => return Some(done),
            Err(e) => e,
        };
        let notice = Notice::Trouble { what: e.to_string() };
        if !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
        if matches!(e, store::Error::Damaged { .. }) {
            self.keep = None;
            self.is_damaged = true;
        }
        None
    }

    /// Opens anew what was found damaged; what is known begins anew with it.
    pub fn mend(&mut self, root: &Root, options: &Options, now: Now) {
        if std::mem::take(&mut self.is_damaged) {
            let notices = std::mem::take(&mut self.notices);
            *self = Self::open(root, options, now);
            self.notices.splice(0..0, notices);
        }
    }
}

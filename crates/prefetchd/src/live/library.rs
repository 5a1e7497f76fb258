//! The store as the process uses it: a failing store does not end the process.

mod forget;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::Duration;

use eke_linux::Root;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::clock::unix_s;
use super::notice::Notice;
use super::options::Options;
use crate::choose::candidates::{Coldest, is_soon_over};
use eke_prefetch_model::launch::Launch;
use eke_prefetch_model::learn::{self, Finished, Now, unite};
use eke_prefetch_model::missing::{ReadFor, missing};
use eke_prefetch_model::program::{Program, ProgramId};
use eke_prefetch_model::user_event::UserEvent;
use eke_prefetch_store as store;
use eke_prefetch_store::{
    Decision, DecisionId, FALLBACK, Fallback, OpenedCopy, OpenedStore, PageUsage, ProgramStore,
};

/// How often a store that could not be written is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(180);
/// The state with the programs that are due for learning.
const CHANGED: (&str, u32) = ("changed", 1);
/// How long launches and events of brief programs wait, unless there is something else to write: disks must be able to sleep.
const WRITE_WITHIN: Duration = Duration::from_secs(3_600);
/// The most launches and events that wait to be written.
const MOST_WAITING: usize = 1_024;

/// What is needed of a program before its files.
#[derive(Debug, Clone, Default)]
struct KnownProgram {
    state: learn::ProgramState,
    /// How long its coldest launch took, and the bytes that it read.
    coldest: (Duration, u64),
    /// Of its file set, once that was loaded.
    set_bytes: Option<u64>,
    /// The accounts whose launches were learned.
    users: Vec<u32>,
    /// The inode of the learned executable, if that is known.
    exe_ino: Option<u64>,
}

impl KnownProgram {
    fn new(learned: u32, coldest: (Duration, u64), set_bytes: Option<u64>) -> Self {
        let state = learn::ProgramState { learned, ..learn::ProgramState::default() };
        Self { state, coldest, set_bytes, ..Self::default() }
    }

    /// A set that was not loaded yet may be of any size.
    fn is_brief(&self) -> bool {
        let (took, read_bytes) = self.coldest;
        let set_bytes = self.set_bytes.unwrap_or(u64::MAX);
        Coldest { took, read_bytes, set_bytes, learned: self.state.learned }.is_brief()
    }
}

/// The store, and the part of it that each exec needs.
#[derive(Debug)]
pub(super) struct Library {
    store: Option<ProgramStore>,
    fallback: Fallback,
    /// When the store could not be written last, while its copy is in use.
    on_copy: Option<Duration>,
    boot: String,
    programs: BTreeMap<ProgramId, KnownProgram>,
    events: Vec<UserEvent>,
    launches: Vec<store::UnlearnedLaunch>,
    /// Whether something was written, or is to be, so that what waits is written with it.
    has_news: bool,
    /// When that was done last, by CLOCK_MONOTONIC.
    written: Duration,
    version: i64,
    /// A hash of each state as it was stored last.
    stored: BTreeMap<String, u64>,
    /// Programs whose files that have no room were reported.
    reported_full: BTreeSet<ProgramId>,
    is_damaged: bool,
    notices: Vec<Notice>,
}

impl Library {
    /// Opens the store, or else a copy of it. Errors are in [`Self::take_notices`].
    pub fn open(root: &Root, options: &Options, now: Now) -> Self {
        let mut library = Self {
            store: None,
            fallback: Fallback::new(&options.store, &root.path(FALLBACK)),
            on_copy: None,
            boot: root.read("proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned(),
            programs: BTreeMap::new(),
            events: Vec::new(),
            launches: Vec::new(),
            has_news: false,
            written: now.mono,
            version: 0,
            stored: BTreeMap::new(),
            reported_full: BTreeSet::new(),
            is_damaged: false,
            notices: Vec::new(),
        };
        match library.fallback.open(&library.boot, unix_s(now)) {
            Ok(opened) => library.take(opened),
            Err(e) => {
                library.trouble(e.to_string());
                library.open_copy(now);
            }
        }
        library.load(now);
        library
    }

    fn open_copy(&mut self, now: Now) {
        match self.fallback.open_copy(&self.boot, unix_s(now)) {
            Ok(OpenedCopy { opened, not_copied }) => {
                self.on_copy = Some(now.mono);
                self.take(opened);
                self.trouble(self.sentence(not_copied));
            }
            Err(e) => self.trouble(e.to_string()),
        }
    }

    fn sentence(&self, not_copied: Option<store::Error>) -> String {
        let copy = self.path().unwrap_or(Path::new("")).display();
        let how = match not_copied {
            None => format!("goes on with a copy, {copy}"),
            Some(store::Error::Nothing(_)) => format!("learns into {copy}"),
            Some(e) => format!("learns anew into {copy} ({e})"),
        };
        let (dir, minutes) = (self.fallback.store().display(), TRY_AGAIN.as_secs() / 60);
        format!(
            "eke {how}. It tries {dir} again every {minutes} minutes, and then takes along what it has learned; a reboot before that loses it"
        )
    }

    fn take(&mut self, opened: OpenedStore) {
        opened.set_aside.into_iter().for_each(|aside| self.trouble(aside.to_string()));
        self.store = Some(opened.store);
    }

    fn trouble(&mut self, what: String) {
        self.notices.push(Notice::Trouble { what });
    }

    /// Whether the store could not be written, and is to be tried now.
    pub fn is_return_due(&mut self, now: Now) -> bool {
        let due = self.on_copy.as_mut().filter(|tried| now.mono.saturating_sub(**tried) >= TRY_AGAIN);
        let is_due = due.map(|tried| *tried = now.mono).is_some();
        is_due && self.store.as_ref().is_some_and(|copy| self.fallback.has_room(copy))
    }

    /// Goes back from the copy to the store, with what was learned since.
    pub fn return_to_store(&mut self, now: Now) {
        let Some(copy) = self.store.as_mut() else { return };
        // The next attempt may succeed, and this failure was reported already.
        let Ok(opened) = self.fallback.move_back(copy, &self.boot, unix_s(now)) else { return };
        self.store = None;
        self.fallback.remove_copy();
        self.take(opened);
        self.on_copy = None;
        // Another process may have changed the store meanwhile: the next refresh loads it.
        self.version = -1;
        let dir = self.fallback.store().display();
        self.trouble(format!("{dir} can be written again: eke has moved back to it"));
    }

    fn load(&mut self, now: Now) {
        let records = self.with(|store| store.records(unix_s(now))).unwrap_or_default();
        let known = |record: &store::Record| {
            let users_and_executable = self.with(|store| store.users_and_executable(&record.program));
            let (users, exe_ino) = users_and_executable.unwrap_or_default();
            let known = KnownProgram::new(record.learned, record.coldest, None);
            (record.id(), KnownProgram { users, exe_ino, ..known })
        };
        self.programs = records.iter().map(known).collect();
        let changed: Vec<ProgramId> = self.json_state(CHANGED).unwrap_or_default();
        changed.iter().for_each(|id| self.mark_changed(*id));
        self.version = self.with(|store| store.data_version()).unwrap_or_default();
        self.stored.clear();
    }

    /// Reloads after another process (`eke prefetch forget`) changed the store, or the store was pruned; returns the forgotten programs. What waits to be
    /// written of them goes.
    pub fn refresh(&mut self, now: Now) -> Vec<ProgramId> {
        let version = self.with(|store| store.data_version()).unwrap_or(self.version);
        if version == self.version {
            return Vec::new();
        }
        let before: Vec<ProgramId> = self.programs.keys().copied().collect();
        self.load(now);
        let forgotten: Vec<ProgramId> =
            before.into_iter().filter(|id| !self.programs.contains_key(id)).collect();
        if !forgotten.is_empty() {
            self.store_changed();
            self.drop_waiting(&forgotten);
        }
        forgotten
    }

    /// The notices since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Adds a notice.
    pub fn notify(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    /// The path of the store.
    pub fn path(&self) -> Option<&Path> {
        self.store.as_ref().map(ProgramStore::path)
    }

    /// The number of learned programs.
    pub fn len(&self) -> usize {
        self.programs.len()
    }

    /// The state of a learned program at its exec.
    pub fn state_of(&self, id: ProgramId) -> Option<learn::ProgramState> {
        self.programs.get(&id).map(|known| known.state)
    }

    /// Whether launches of a learned program are known, but none of this account. Of a program with so many users that not all are kept, that is unknown.
    pub fn is_first_of(&self, id: ProgramId, account: u32) -> bool {
        let is_first =
            |known: &KnownProgram| known.users.len() < store::MOST_USERS && !known.users.contains(&account);
        self.programs.get(&id).is_some_and(is_first)
    }

    /// Whether this is the inode of another executable than the learned one, and that was not noticed yet.
    pub fn has_another_executable(&self, id: ProgramId, ino: Option<u64>) -> bool {
        let is_other = |known: &KnownProgram| {
            !known.state.changed && known.exe_ino.zip(ino).is_some_and(|(learned, now)| learned != now)
        };
        self.programs.get(&id).is_some_and(is_other)
    }

    /// How long the coldest launch of a learned program took.
    pub fn cold_launch(&self, id: ProgramId) -> Option<Duration> {
        self.programs.get(&id).map(|known| known.coldest.0)
    }

    /// Whether users hardly notice its cold launch, as far as that is known without reading the store.
    pub fn seems_brief(&self, id: ProgramId) -> bool {
        self.programs.get(&id).is_some_and(KnownProgram::is_brief)
    }

    /// Whether users hardly notice its cold launch. For a program that was seldom learned this reads its file set once.
    pub fn is_brief(&mut self, id: ProgramId, now: Now) -> bool {
        let is_open = |known: &KnownProgram| known.set_bytes.is_none() && is_soon_over(known.coldest.0);
        if !self.seems_brief(id) && self.programs.get(&id).is_some_and(is_open) {
            self.stored_program(id, now);
        }
        self.seems_brief(id)
    }

    /// A program with its files. If another program has seen some of them replaced, it is due for learning.
    pub fn program(&mut self, id: ProgramId, now: Now) -> Option<store::LearnedProgram> {
        let known = self.stored_program(id, now)?;
        if known.replaced > 0 {
            self.set_changed([id]);
        }
        Some(known)
    }

    fn stored_program(&mut self, id: ProgramId, now: Now) -> Option<store::LearnedProgram> {
        let known = self.with(|store| store.program(id, unix_s(now))).flatten()?;
        let set_bytes = Some(known.set.bytes());
        self.programs.entry(id).and_modify(|program| program.set_bytes = set_bytes);
        Some(known)
    }

    /// The bytes of a program's file set; 0 if it is not learned.
    pub fn bytes(&mut self, id: ProgramId, now: Now) -> u64 {
        let is_learned = self.programs.contains_key(&id);
        is_learned.then(|| self.program(id, now)).flatten().map_or(0, |known| known.set.bytes())
    }

    /// Files of these programs have changed, so they must be learned again: at the next start of each, which may be after a boot.
    pub fn set_changed(&mut self, ids: impl IntoIterator<Item = ProgramId>) {
        ids.into_iter().for_each(|id| self.mark_changed(id));
        self.store_changed();
    }

    fn mark_changed(&mut self, id: ProgramId) {
        self.programs.entry(id).and_modify(|known| known.state.changed = true);
    }

    fn store_changed(&mut self) {
        let changed = self.programs.iter().filter(|(_, known)| known.state.changed);
        let changed: Vec<ProgramId> = changed.map(|(id, _)| *id).collect();
        self.put_json_state(CHANGED, &changed);
    }

    /// Stores a launch; returns files and bytes of the program's new set. `is_new_wrapper`: what it starts is not part of its launches any more, so a
    /// much larger set goes. `read_bytes`: what eke had read for it.
    pub fn add_launch(
        &mut self,
        finished: &Finished,
        read_bytes: u64,
        is_new_wrapper: bool,
        now: Now,
    ) -> Option<(usize, u64)> {
        let launch = &finished.launch;
        let id = launch.program.id();
        let is_outdated =
            |known: &store::LearnedProgram| is_new_wrapper && known.set.bytes() > 4 * launch.set.bytes();
        let known = self.stored_program(id, now).filter(|known| !is_outdated(known));
        if let Some(known) = known.as_ref().filter(|_| read_bytes > 0) {
            let missing = missing(read_for(launch, read_bytes), &finished.cold, &known.set);
            self.with(|store| store.put_missing(id, missing));
        }
        let learned = known.as_ref().map_or(0, |known| known.record.learned);
        let set = unite(known.as_ref().map(|known| &known.set), learned, launch);
        let left_out = self.with(|store| store.add_launch(launch, &set, unix_s(now)))?;
        self.has_news = true;
        if left_out.files > 0 && self.reported_full.insert(id) {
            // Its name stays root's: the system's journal has more readers.
            self.trouble(format!(
                "a program uses more files than the store takes for one; eke leaves out {}, those that the fewest of its starts use (`sudo eke prefetch list` shows the programs)",
                left_out.files
            ));
        }
        if left_out.programs > 0 {
            // The store has pruned them: the next refresh finds out which.
            self.version = -1;
        }
        let coldest = known.map_or((Duration::ZERO, 0), |known| known.record.coldest);
        let coldest = coldest_of((launch.took, launch.cold_bytes), coldest);
        let program = KnownProgram::new(learned + 1, coldest, Some(set.bytes()));
        let users = self.with(|store| store.users_and_executable(&launch.program)).unwrap_or_default();
        let before = self.programs.insert(id, KnownProgram { users: users.0, exe_ino: users.1, ..program });
        if before.is_some_and(|before| before.state.changed) {
            self.store_changed();
        }
        Some((set.files.len(), set.bytes()))
    }

    /// Counts a launch that is not learned. `is_news`: it is to be written soon.
    pub fn count_launch(&mut self, program: &Program, is_news: bool, now: Now) {
        self.has_news |= is_news;
        if self.launches.len() < MOST_WAITING {
            self.launches.push(store::UnlearnedLaunch { id: program.id(), at_s: unix_s(now) });
        }
    }

    /// Adds an event. `is_news`: it is to be written soon.
    pub fn add_event(&mut self, event: UserEvent, is_news: bool) {
        self.has_news |= is_news;
        if self.events.len() < MOST_WAITING {
            self.events.push(event);
        }
    }

    /// The next [`Self::flush`] writes what waits.
    pub fn write_soon(&mut self) {
        self.has_news = true;
    }

    /// Writes pending events and launches, if something else was written, too, or they wait for long.
    pub fn flush(&mut self, now: Now) {
        let is_long = now.mono.saturating_sub(self.written) >= WRITE_WITHIN;
        let is_full = self.events.len().max(self.launches.len()) >= MOST_WAITING / 2;
        if !(std::mem::take(&mut self.has_news) || is_long || is_full) {
            return;
        }
        self.written = now.mono;
        let (events, launches) = (std::mem::take(&mut self.events), std::mem::take(&mut self.launches));
        if !events.is_empty() {
            self.with(|store| store.add_events(&events));
        }
        if !launches.is_empty() {
            self.with(|store| store.count_launches(&launches, unix_s(now)));
        }
    }

    /// Stores decisions; returns their ids, or none if the store fails.
    pub fn add_decisions(&mut self, decisions: &[Decision]) -> Vec<DecisionId> {
        if decisions.is_empty() {
            return Vec::new();
        }
        self.has_news = true;
        self.with(|store| store.add_decisions(decisions)).unwrap_or_default()
    }

    /// Adds the use of a decision's pages.
    pub fn add_usage(&mut self, decision: DecisionId, usage: PageUsage) {
        self.with(|store| store.add_usage(decision, usage));
    }

    /// A stored state.
    pub fn state(&mut self, name: &str, version: u32) -> Option<Vec<u8>> {
        self.with(|store| store.state(name, version)).flatten()
    }

    /// Stores a state, unless it is stored already: an idle machine's disk may sleep.
    pub fn put_state(&mut self, name: &str, version: u32, bytes: &[u8]) {
        let mut hasher = DefaultHasher::new();
        (version, bytes).hash(&mut hasher);
        let hash = hasher.finish();
        if self.stored.get(name) == Some(&hash) {
            return;
        }
        if self.with(|store| store.put_state(name, version, bytes)).is_some() {
            self.stored.insert(name.to_owned(), hash);
            self.has_news = true;
        }
    }

    /// Whether a state of this name and size can be stored; a failing store does not say no.
    pub fn has_room(&mut self, name: &str, bytes: usize) -> bool {
        self.with(|store| store.state_room(name)).is_none_or(|room| bytes <= room)
    }

    /// A state stored as JSON; `None` if there is none, or it has another form.
    pub fn json_state<T: DeserializeOwned>(&mut self, (name, version): (&str, u32)) -> Option<T> {
        self.state(name, version).and_then(|bytes| serde_json::from_slice(&bytes).ok())
    }

    /// Stores a state as JSON.
    pub fn put_json_state(&mut self, (name, version): (&str, u32), state: &impl Serialize) {
        // Numbers always have a form in JSON.
        let bytes = serde_json::to_vec(state).unwrap_or_default();
        self.put_state(name, version, &bytes);
    }

    /// Uses the store. A failure becomes a notice; a damaged store is closed and later set aside.
    fn with<T>(&mut self, act: impl FnOnce(&mut ProgramStore) -> store::Result<T>) -> Option<T> {
        let e = match act(self.store.as_mut()?) {
            Ok(done) => return Some(done),
            Err(e) => e,
        };
        let notice = Notice::Trouble { what: e.to_string() };
        if !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
        if matches!(e, store::Error::Damaged { .. }) {
            self.store = None;
            self.is_damaged = true;
        }
        None
    }

    /// Reopens a damaged store; learning begins anew.
    pub fn reopen_damaged(&mut self, root: &Root, options: &Options, now: Now) {
        if std::mem::take(&mut self.is_damaged) {
            if self.on_copy.is_some() {
                self.fallback.remove_copy();
            }
            let notices = std::mem::take(&mut self.notices);
            *self = Self::open(root, options, now);
            self.notices.splice(0..0, notices);
        }
    }
}

/// Of two launches, the later first, the one that read more, as the store keeps it.
fn coldest_of(launch: (Duration, u64), before: (Duration, u64)) -> (Duration, u64) {
    if launch.1 >= before.1 { launch } else { before }
}

fn read_for(launch: &Launch, read_bytes: u64) -> ReadFor {
    let took_ms = u64::try_from(launch.took.as_millis()).unwrap_or(u64::MAX);
    ReadFor { at_s: launch.began_ns.div_euclid(1_000_000_000), took_ms, read_bytes }
}

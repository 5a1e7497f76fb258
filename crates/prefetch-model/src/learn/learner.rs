//! Records all current launches.

use std::collections::{BTreeMap, BTreeSet};

use eke_statistics::random::Random;

use super::arguments::GivenPaths;
use super::event::{Exec, Inode, LaunchId, TraceEvent, TracedFile};
use super::lineage::{Lineage, lineage};
use super::recording::Recording;
use super::rules::{Attempts, LaunchRate, Now, ProgramState, Settings, Starter, should_store};
use crate::launch::{Launch, LaunchEnd};
use crate::missing::ColdFile;
use crate::program::ProgramId;

/// The most processes that are remembered to have left their launches.
const LEFT: usize = 4096;
/// Tracers may use the highest bit of an id.
const LAST_ID: u32 = u32::MAX >> 1;

/// A launch whose recording ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// Its id; the tracer may forget it.
    pub id: LaunchId,
    /// Its record.
    pub launch: Launch,
    /// Whether to store it.
    pub should_store: bool,
    /// The programs that its processes started; eight at most.
    pub started: Vec<ProgramId>,
    /// Whether its first process became another program.
    pub became: bool,
    /// Whether no process of it runs the program any more.
    pub has_ended: bool,
    /// Bytes of new pages that it used itself after it had started another program.
    pub bytes_after_start: u64,
    /// The pages that it read from the disk and used, by file.
    pub cold: Vec<ColdFile>,
}

/// Turns trace events into launches. It has no clock: callers pass the time.
#[derive(Debug)]
pub struct Learner {
    settings: Settings,
    last: u32,
    recordings: BTreeMap<LaunchId, Recording>,
    /// Processes that left a launch and are not recorded, until they end: the tracer may still report them within it.
    left: BTreeSet<u32>,
    rate: LaunchRate,
    rate_within: LaunchRate,
    rate_in_session: LaunchRate,
    /// Of launches that do not count.
    rate_short: LaunchRate,
    attempts: Attempts,
    random: Random,
}

impl Learner {
    /// A learner without launches.
    pub fn new(settings: Settings) -> Self {
        Self {
            rate: LaunchRate::new(settings.burst, settings.begins_per_s),
            rate_within: LaunchRate::new(settings.burst_within, settings.begins_within_per_s),
            rate_in_session: LaunchRate::new(settings.burst_in_session, settings.begins_per_s),
            rate_short: LaunchRate::new(settings.short_per_s, settings.short_per_s),
            random: Random::new(settings.seed),
            settings,
            last: 0,
            recordings: BTreeMap::new(),
            left: BTreeSet::new(),
            attempts: Attempts::default(),
        }
    }

    /// Number of launches being recorded.
    pub fn recording(&self) -> usize {
        self.recordings.len()
    }

    /// What an exec is to the recorded launches. The launch of its process counts, or that of the parent, for tracers that miss a fork.
    pub fn lineage(&self, exec: &Exec) -> Lineage {
        let found = self.launch_of(exec.pid, exec.parent, exec.launch);
        let within = found.and_then(|id| Some((id, &self.recordings.get(&id)?.program)));
        lineage(exec.program.as_ref(), within)
    }

    /// Decides whether to record a start, and returns its id, which the tracer needs. The process leaves the launch that it was part of. Skipped are
    /// parts of launches, and starts of a running program, without a path, or beyond the limits.
    pub fn begin(&mut self, exec: &Exec, known: ProgramState, now: Now) -> Option<LaunchId> {
        let is_within = match self.lineage(exec) {
            Lineage::Part(_) => return None,
            Lineage::Leaves(launch) => {
                self.leave(launch, exec);
                true
            }
            Lineage::Apart => false,
        };
        let program = exec.program.clone().filter(|_| !known.runs)?;
        let is_due = self.attempts.is_due(program.id(), known, &self.settings, &mut self.random);
        let starter = Starter { account: self.settings.owners.account(exec.uid), group: exec.group };
        if !is_due
            || !has_room(&self.recordings, &self.settings, starter, known.in_session)
            || !self.rate(is_within, known.in_session).take(starter, now.mono)
        {
            return None;
        }
        self.last = self.last % LAST_ID + 1;
        let id = LaunchId(self.last);
        self.left.remove(&exec.pid);
        self.recordings.insert(id, Recording::new(exec, starter, program, known, is_within, now));
        Some(id)
    }

    fn rate(&mut self, is_within: bool, in_session: bool) -> &mut LaunchRate {
        match (in_session, is_within) {
            (true, _) => &mut self.rate_in_session,
            (false, true) => &mut self.rate_within,
            (false, false) => &mut self.rate,
        }
    }

    fn leave(&mut self, launch: LaunchId, exec: &Exec) {
        let recording = self.recordings.get_mut(&launch);
        recording.into_iter().for_each(|recording| recording.leave(exec.pid, exec.program.as_ref()));
        self.has_left(exec.pid);
    }

    fn has_left(&mut self, pid: u32) {
        if self.left.len() >= LEFT {
            self.left.clear();
        }
        self.left.insert(pid);
    }

    /// What a launch was given to work on.
    pub fn give(&mut self, launch: LaunchId, given: GivenPaths) {
        if let Some(recording) = self.recordings.get_mut(&launch) {
            recording.give(given);
        }
    }

    /// Adds an event to the launch of its process; events of other processes are ignored.
    pub fn add(&mut self, event: &TraceEvent, now: Now) {
        match event {
            TraceEvent::Exec(_) => {}
            TraceEvent::Exit { pid, .. } => {
                self.left.remove(pid);
                self.recordings.values_mut().for_each(|recording| recording.exit(*pid));
            }
            TraceEvent::Lost(_) => self.recordings.values_mut().for_each(Recording::lost),
            TraceEvent::Fork { pid, parent, launch } => self.fork(*pid, *parent, *launch),
            TraceEvent::Read { launch, bytes } => {
                _ = self.recordings.get_mut(launch).map(|recording| recording.read(*bytes));
            }
            TraceEvent::File { launch, pid, inode, found } => {
                self.file(*launch, *pid, *inode, found.as_ref());
            }
            TraceEvent::Pages { launch, pid, inode, span, how } => {
                let Some(to) = self.launch_of_page(*pid, *launch) else { return };
                self.describe(*launch, to, *inode);
                let recording = self.recordings.get_mut(&to);
                _ = recording.map(|recording| recording.touch(*inode, *span, *how, now.mono, &self.settings));
            }
        }
    }

    /// Adds a forked process. A known one stays where it is.
    fn fork(&mut self, pid: u32, parent: u32, launch: LaunchId) {
        if self.launch_with(pid).is_some() || self.left.contains(&pid) {
            return;
        }
        match self.launch_of_page(parent, launch).and_then(|id| self.recordings.get_mut(&id)) {
            Some(recording) => recording.fork(pid),
            // The kernel still counts it to the launch that its parent left.
            None if self.left.contains(&parent) => self.has_left(pid),
            None => {}
        }
    }

    /// Adds a file's description to the launch of its process, and to the one that the tracer reports: it reports a file once for all processes.
    fn file(&mut self, launch: LaunchId, pid: u32, inode: Inode, found: Option<&TracedFile>) {
        let of = self.launch_of_page(pid, launch);
        for id in [Some(launch), of.filter(|of| *of != launch)].into_iter().flatten() {
            let recording = self.recordings.get_mut(&id);
            _ = recording.map(|recording| recording.file(inode, found, of == Some(id), &self.settings));
        }
    }

    /// Copies a description between launches.
    fn describe(&mut self, from: LaunchId, to: LaunchId, inode: Inode) {
        if from == to {
            return;
        }
        let described = self.recordings.get(&from).and_then(|recording| recording.description(inode));
        let Some(found) = described.map(Option::<&TracedFile>::cloned) else { return };
        let recording = self.recordings.get_mut(&to);
        _ = recording.map(|recording| recording.file(inode, found.as_ref(), false, &self.settings));
    }

    fn launch_with(&self, pid: u32) -> Option<LaunchId> {
        self.recordings.iter().find(|(_, recording)| recording.has(pid)).map(|(id, _)| *id)
    }

    /// The launch that a process's pages count for: its own, not always the reported one.
    fn launch_of_page(&self, pid: u32, reported: LaunchId) -> Option<LaunchId> {
        self.launch_with(pid).or_else(|| (!self.left.contains(&pid)).then_some(reported))
    }

    /// The launch of a process, of its parent if the process is not known, or the reported one.
    fn launch_of(&self, pid: u32, parent: u32, reported: Option<LaunchId>) -> Option<LaunchId> {
        let found = self.launch_with(pid);
        if found.is_some() || self.left.contains(&pid) {
            return found;
        }
        self.launch_with(parent).or_else(|| reported.filter(|_| !self.left.contains(&parent)))
    }

    /// Stops recording a launch without a result.
    pub fn drop_launch(&mut self, id: LaunchId) {
        self.recordings.remove(&id);
    }

    /// The launches that have ended by `now`.
    pub fn over(&mut self, now: Now) -> Vec<Finished> {
        let ended = |(id, recording): (&LaunchId, &Recording)| {
            Some((*id, recording.ended(now.mono, &self.settings)?))
        };
        let over: Vec<(LaunchId, LaunchEnd)> = self.recordings.iter().filter_map(ended).collect();
        over.into_iter().filter_map(|(id, why)| self.finish(id, why, now)).collect()
    }

    fn finish(&mut self, id: LaunchId, why: LaunchEnd, now: Now) -> Option<Finished> {
        let mut recording = self.recordings.remove(&id)?;
        let (known, started, became) =
            (recording.known, std::mem::take(&mut recording.started), recording.became);
        let (is_within, starter) = (recording.is_within, recording.starter);
        let (cold, bytes_after_start) = (recording.cold(&self.settings), recording.bytes_after_start());
        let is_short = why == LaunchEnd::Exited && recording.age(now) < self.settings.short;
        let mut launch = recording.finish(why, &self.settings);
        // What it shows, and its room in the store, are its owner's.
        launch.uid = starter.account;
        let should_store = should_store(&launch, known, &self.settings);
        if is_short && !should_store && self.rate_short.take(starter, now.mono) {
            self.rate(is_within, known.in_session).give(starter);
        }
        self.attempts.learned(launch.program.id(), should_store);
        let has_ended = why == LaunchEnd::Exited && launch.ended != LaunchEnd::Lost;
        Some(Finished { id, launch, should_store, started, became, has_ended, bytes_after_start, cold })
    }
}

/// Whether one more launch of this starter may be recorded. A launch whose processes have all become others takes no room.
fn has_room(
    recordings: &BTreeMap<LaunchId, Recording>,
    settings: &Settings,
    starter: Starter,
    in_session: bool,
) -> bool {
    let is_beside = |recording: &&Recording| recording.runs() && recording.known.in_session == in_session;
    let running = || recordings.values().filter(is_beside).map(|recording| recording.starter);
    if in_session {
        return running().count() < settings.at_once_in_session;
    }
    let of_user = running().filter(|of| of.account == starter.account).count();
    let of_group = running().filter(|of| *of == starter).count();
    running().count() < settings.at_once
        && of_user * 4 < settings.at_once * 3
        && of_group * 2 < settings.at_once
}

#[cfg(test)]
#[path = "learner_tests.rs"]
mod tests;

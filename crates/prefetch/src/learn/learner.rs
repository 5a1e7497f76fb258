//! All launches that are being learned.

use std::collections::BTreeMap;

use super::event::{Exec, LaunchId, Seen};
use super::live::Live;
use super::rules::{Bucket, Known, Now, Settings, Tried, is_worth};
use crate::launch::{Ended, Launch};

/// A launch that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// Its number: the tracer may forget it.
    pub id: LaunchId,
    /// What was seen of it.
    pub launch: Launch,
    /// Is it worth keeping?
    pub is_worth: bool,
}

/// Makes launches of what is seen. It has no clock: times are given.
#[derive(Debug)]
pub struct Learner {
    settings: Settings,
    last: u32,
    live: BTreeMap<LaunchId, Live>,
    bucket: Bucket,
    tried: Tried,
}

impl Learner {
    /// One that learns nothing yet.
    pub fn new(settings: Settings) -> Self {
        let bucket = Bucket::new(&settings);
        Self { settings, last: 0, live: BTreeMap::new(), bucket, tried: Tried::default() }
    }

    /// How many launches are being learned.
    pub fn live(&self) -> usize {
        self.live.len()
    }

    /// An exec: should its launch be learned? Not those inside of one that is being learned, nor those without a path; and not too
    /// many. The tracer must be told of the number that comes back.
    pub fn begin(&mut self, exec: &Exec, known: Known, now: Now) -> Option<LaunchId> {
        let program = exec.program.clone().filter(|_| exec.launch.is_none())?;
        let is_due = self.tried.is_due(program.id(), known, &self.settings);
        if !is_due || self.live.len() >= self.settings.at_once || !self.bucket.take(&self.settings, now.mono) {
            return None;
        }
        self.last = self.last.checked_add(1).unwrap_or(1);
        let id = LaunchId(self.last);
        self.live.insert(id, Live::new(exec, program, known, now));
        Some(id)
    }

    /// Something was seen; what is of no launch that is being learned is no matter.
    pub fn see(&mut self, seen: &Seen, now: Now) {
        let settings = &self.settings;
        let mut of = |launch: &LaunchId| self.live.get_mut(launch);
        match seen {
            Seen::Exec(_) => {}
            Seen::Exit { pid, launch: Some(launch), .. } => _ = of(launch).map(|live| live.exit(*pid)),
            Seen::Exit { launch: None, .. } => {}
            Seen::Fork { pid, launch } => _ = of(launch).map(|live| live.fork(*pid)),
            Seen::File { launch, inode, found } => {
                _ = of(launch).map(|live| live.file(*inode, found.as_ref(), settings));
            }
            Seen::Pages { launch, inode, span, how } => {
                _ = of(launch).map(|live| live.touch(*inode, *span, *how, now.mono, settings));
            }
            Seen::Read { launch, bytes } => _ = of(launch).map(|live| live.read(*bytes)),
            Seen::Lost(_) => self.live.values_mut().for_each(Live::lost),
        }
    }

    /// The launches that are over by now.
    pub fn over(&mut self, now: Now) -> Vec<Finished> {
        let ended = |(id, live): (&LaunchId, &Live)| Some((*id, live.ended(now.mono, &self.settings)?));
        let over: Vec<(LaunchId, Ended)> = self.live.iter().filter_map(ended).collect();
        over.into_iter().filter_map(|(id, why)| self.finish(id, why)).collect()
    }

    fn finish(&mut self, id: LaunchId, why: Ended) -> Option<Finished> {
        let live = self.live.remove(&id)?;
        let known = live.known;
        let launch = live.finish(why);
        let is_worth = is_worth(&launch, known, &self.settings);
        self.tried.learned(launch.program.id(), is_worth);
        Some(Finished { id, launch, is_worth })
    }
}

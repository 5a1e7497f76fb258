//! Records all current launches.

use std::collections::BTreeMap;

use super::event::{Exec, LaunchId, Seen};
use super::live::Live;
use super::rules::{Begins, Known, Now, Settings, Tried, is_worth};
use crate::launch::{Ended, Launch};

/// A launch whose recording ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// Its id; the tracer may forget it.
    pub id: LaunchId,
    /// Its record.
    pub launch: Launch,
    /// Whether to store it.
    pub is_worth: bool,
}

/// Turns trace events into launches. It has no clock: callers pass the time.
#[derive(Debug)]
pub struct Learner {
    settings: Settings,
    last: u32,
    live: BTreeMap<LaunchId, Live>,
    begins: Begins,
    tried: Tried,
}

impl Learner {
    /// A learner without launches.
    pub fn new(settings: Settings) -> Self {
        Self { settings, last: 0, live: BTreeMap::new(), begins: Begins::default(), tried: Tried::default() }
    }

    /// Number of launches being recorded.
    pub fn live(&self) -> usize {
        self.live.len()
    }

    /// Decides whether to record the launch of an exec, and returns its id, which the tracer needs. Skipped are execs within a recorded launch, of a
    /// running program, without a path, or beyond the limits.
    pub fn begin(&mut self, exec: &Exec, known: Known, now: Now) -> Option<LaunchId> {
        let program = exec.program.clone().filter(|_| exec.launch.is_none() && !known.runs)?;
        let is_due = self.tried.is_due(program.id(), known, &self.settings);
        if !is_due || !self.has_room(exec.uid) || !self.begins.take(exec.uid, &self.settings, now.mono) {
            return None;
        }
        self.last = self.last.checked_add(1).unwrap_or(1);
        let id = LaunchId(self.last);
        self.live.insert(id, Live::new(exec, program, known, now));
        Some(id)
    }

    fn has_room(&self, user: u32) -> bool {
        let of_user = self.live.values().filter(|live| live.uid == user).count();
        self.live.len() < self.settings.at_once && of_user * 4 < self.settings.at_once * 3
    }

    /// Adds an event to its launch; events of other processes are ignored.
    pub fn see(&mut self, seen: &Seen, now: Now) {
        match seen {
            Seen::Exit { pid, .. } => self.live.values_mut().for_each(|live| live.exit(*pid)),
            Seen::Lost(_) => self.live.values_mut().for_each(Live::lost),
            _ => {
                let live = seen.launch().and_then(|launch| self.live.get_mut(&launch));
                _ = live.map(|live| live.see(seen, now.mono, &self.settings));
            }
        }
    }

    /// The launch of a process or of its parent, for tracers that do not track launches.
    pub fn launch_of(&self, exec: &Exec) -> Option<LaunchId> {
        let has = |live: &Live| live.has(exec.pid) || live.has(exec.parent);
        exec.launch.or_else(|| self.live.iter().find(|(_, live)| has(live)).map(|(id, _)| *id))
    }

    /// Stops recording a launch without a result.
    pub fn drop_launch(&mut self, id: LaunchId) {
        self.live.remove(&id);
    }

    /// The launches that have ended by `now`.
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::file_set::{Kind, Stamp};
    use crate::learn::{Found, How, Inode};
    use crate::pages::{Pages, Span};
    use crate::program::Program;

    const FILE: Inode = Inode { dev: 1, ino: 10 };

    fn at(ms: u64) -> Now {
        Now { mono: Duration::from_millis(ms), real_ns: i64::try_from(ms).unwrap() * 1_000_000 }
    }

    fn exec(pid: u32, name: &str) -> Exec {
        let program = Some(Program::of_exe(format!("/usr/bin/{name}")));
        Exec { pid, parent: 1, uid: 1000, at: Duration::ZERO, launch: None, program }
    }

    fn file(launch: LaunchId, inode: Inode, kind: Kind) -> Seen {
        let found = Found { path: format!("/f{}", inode.ino).into(), kind, stamp: Stamp::default() };
        Seen::File { launch, inode, found: Some(found) }
    }

    fn pages(launch: LaunchId, inode: Inode, first: u64, end: u64, how: How) -> Seen {
        Seen::Pages { launch, inode, span: Span { first, end }, how }
    }

    /// A learner that records process 5 since time 0.
    fn learning(settings: Settings) -> (Learner, LaunchId) {
        let mut learner = Learner::new(settings);
        let id = learner.begin(&exec(5, "a"), Known::default(), at(0)).unwrap();
        (learner, id)
    }

    #[test]
    fn a_launch_is_over_when_it_is_quiet() {
        let (mut learner, id) = learning(Settings::default());
        learner.see(&file(id, FILE, Kind::File), at(10));
        for ms in [20, 900, 1800] {
            learner.see(&pages(id, FILE, ms, ms + 20, How::Read), at(ms));
            learner.see(&pages(id, FILE, ms, ms + 32, How::Added), at(ms));
        }
        learner.see(&pages(id, FILE, 20, 21, How::Fault), at(3500));
        assert_eq!(learner.over(at(3799)), []);
        let over = learner.over(at(3800));
        let launch = &over[0].launch;
        assert_eq!((launch.ended, launch.took), (Ended::Quiet, Duration::from_millis(1800)));
        assert_eq!((launch.uid, launch.cold_bytes, over[0].is_worth), (1000, 60 * 4096, true));
        assert_eq!(launch.set.files[0].pages.count(), 60);
        assert_eq!(learner.live(), 0);
    }

    #[test]
    fn it_is_over_when_all_its_processes_are_gone() {
        let (mut learner, id) = learning(Settings::default());
        learner.see(&Seen::Fork { pid: 6, launch: id }, at(1));
        let exit = |pid| Seen::Exit { pid, at: Duration::ZERO, launch: None };
        learner.see(&exit(5), at(2));
        assert_eq!(learner.over(at(3)), []);
        learner.see(&exit(6), at(4));
        assert_eq!(learner.over(at(5))[0].launch.ended, Ended::Exited);
    }

    #[test]
    fn it_is_over_after_the_time_for_it() {
        let (mut learner, id) = learning(Settings::default());
        learner.see(&file(id, FILE, Kind::File), at(0));
        for page in 0..40 {
            learner.see(&pages(id, FILE, page, page + 1, How::Fault), at(page * 1000));
        }
        assert_eq!(learner.over(at(29_999)), []);
        assert_eq!(learner.over(at(30_000))[0].launch.ended, Ended::Limit);
    }

    #[test]
    fn what_was_lost_is_said() {
        let (mut learner, _) = learning(Settings::default());
        learner.see(&Seen::Lost(3), at(1));
        assert_eq!(learner.over(at(60_000))[0].launch.ended, Ended::Lost);
    }

    #[test]
    fn there_is_an_end_to_files_and_pages() {
        let settings = Settings { files: 10, bytes: 100 * 4096, ..Settings::default() };
        let (mut learner, id) = learning(settings.clone());
        for ino in 0..50 {
            learner.see(&file(id, Inode { dev: 1, ino }, Kind::File), at(1));
            learner.see(&pages(id, Inode { dev: 1, ino }, 0, 1, How::Read), at(1));
        }
        let launch = learner.over(at(60_000)).remove(0).launch;
        assert_eq!((launch.set.files.len(), launch.ended), (10, Ended::Lost));

        let (mut learner, id) = learning(settings);
        learner.see(&file(id, FILE, Kind::File), at(1));
        learner.see(&pages(id, FILE, 0, 90, How::Read), at(1));
        learner.see(&pages(id, FILE, 1000, 12_000_000, How::Mapped), at(1));
        let launch = learner.over(at(60_000)).remove(0).launch;
        assert_eq!((launch.set.bytes(), launch.ended), (90 * 4096, Ended::Lost));
    }

    #[test]
    fn used_pages_count_and_metadata_that_came_in() {
        let (mut learner, id) = learning(Settings::default());
        let (device, directory, ahead) =
            (Inode { dev: 8, ino: 0 }, Inode { dev: 1, ino: 2 }, Inode { dev: 1, ino: 3 });
        learner.see(&file(id, directory, Kind::Directory), at(1));
        learner.see(&pages(id, directory, 0, 1, How::Added), at(1));
        learner.see(&file(id, device, Kind::Device), at(1));
        learner.see(&pages(id, device, 7, 9, How::Added), at(1));
        learner.see(&file(id, ahead, Kind::File), at(1));
        learner.see(&pages(id, ahead, 0, 8, How::Added), at(1));
        learner.see(&file(id, FILE, Kind::File), at(1));
        learner.see(&pages(id, FILE, 0, 32, How::Added), at(1));
        learner.see(&pages(id, FILE, 4, 5, How::Fault), at(1));
        let launch = learner.over(at(60_000)).remove(0).launch;
        let found: Vec<_> =
            launch.set.files.iter().map(|f| (f.path.to_str().unwrap(), f.pages.count())).collect();
        assert_eq!(found, [("/f2", 0), ("/f0", 2), ("/f10", 1)]);
        assert_eq!(launch.cold_bytes, 3 * 4096);
    }

    #[test]
    fn where_use_is_not_told_what_came_in_counts() {
        let (mut learner, id) = learning(Settings::default());
        learner.see(&file(id, FILE, Kind::File), at(1));
        learner.see(&pages(id, FILE, 0, 32, How::Added), at(1));
        let launch = learner.over(at(60_000)).remove(0).launch;
        assert_eq!(launch.set.files[0].pages, Pages::from_iter(Span::new(0, 32)));
        assert_eq!(launch.ended, Ended::Lost, "what was there before was not seen");
    }

    #[test]
    fn a_file_to_be_left_out_is() {
        let (mut learner, id) = learning(Settings::default());
        learner.see(&Seen::File { launch: id, inode: FILE, found: None }, at(1));
        learner.see(&pages(id, FILE, 0, 32, How::Read), at(1));
        let finished = learner.over(at(60_000)).remove(0);
        assert_eq!((finished.launch.set.files.len(), finished.is_worth), (0, false));
    }

    #[test]
    fn inside_of_a_launch_none_begins() {
        let (mut learner, id) = learning(Settings::default());
        let inside = Exec { launch: Some(id), ..exec(6, "b") };
        assert_eq!(learner.begin(&inside, Known::default(), at(1)), None);
        assert_eq!(learner.launch_of(&Exec { parent: 5, ..exec(7, "c") }), Some(id));
        assert_eq!(learner.launch_of(&exec(5, "c")), Some(id));
        assert_eq!(learner.launch_of(&exec(8, "c")), None);
        let running = Known { runs: true, ..Known::default() };
        assert_eq!(learner.begin(&exec(10, "e"), running, at(1)), None);
        let nameless = Exec { program: None, ..exec(9, "") };
        assert_eq!(learner.begin(&nameless, Known::default(), at(1)), None);
    }

    #[test]
    fn few_are_learned_at_once_and_a_storm_costs_nothing() {
        let mut learner = Learner::new(Settings::default());
        let begun = (0..10_000u32)
            .filter(|n| {
                learner
                    .begin(&exec(100 + n, &format!("p{n}")), Known::default(), at(6 * u64::from(*n)))
                    .is_some()
            })
            .count();
        assert_eq!((begun, learner.live()), (6, 6));
        let other = Exec { uid: 0, ..exec(50, "other") };
        assert!(
            learner.begin(&other, Known::default(), at(60_000)).is_some(),
            "there is room for another user"
        );
        let mut over = 0;
        for n in 0..10_000u32 {
            let now = at(100_000 + 6 * u64::from(n));
            over += learner.over(now).len();
            _ = learner.begin(&exec(20_000 + n, &format!("q{n}")), Known::default(), now);
            assert!(learner.live() <= 8);
        }
        assert!((8..60).contains(&over), "{over}");
    }
}

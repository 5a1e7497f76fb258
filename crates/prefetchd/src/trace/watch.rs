//! A tracer together with a learner: reports events and learned launches.

use std::sync::Arc;
use std::time::Duration;

use eke_linux::Root;

use super::method::OthersReads;
use super::tracer::Tracer;
use eke_prefetch_model::learn::{
    Exec, Finished, LaunchId, Learner, Lineage, Now, ProgramState, Settings, TraceEvent,
};
use eke_prefetch_model::program::Program;
use eke_prefetch_model::source::Source;

/// The read interval while a launch is recorded, so that events fit the buffer.
const LEARNING_PACE: Duration = Duration::from_millis(100);
/// The read interval after an exec: others often follow, and the tracer does not wake for each.
const STORM_PACE: Duration = Duration::from_millis(5);

/// An observation.
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// A program was executed. `Exec::launch` is the launch that it is a part of; a start has none, and is recorded from now on if it has the id of one.
    Exec(Exec, Option<LaunchId>),
    /// A process ended.
    Exit {
        /// The process id.
        pid: u32,
        /// CLOCK_MONOTONIC.
        at: Duration,
    },
    /// Events were lost, perhaps a process's end among them.
    Lost,
    /// A recorded launch has ended.
    Launch(Finished),
    /// A problem: a launch that cannot be recorded, or lost events.
    Trouble(String),
}

/// The receiver of observations.
pub trait TraceListener {
    /// The state of a program at this exec.
    fn state_of(&mut self, program: &Program, exec: &Exec) -> ProgramState;

    /// Receives an observation.
    fn observe(&mut self, observation: Observation);
}

/// A tracer and a learner.
#[derive(Debug)]
pub struct Watch {
    tracer: Tracer,
    learner: Learner,
    /// Whether the last poll returned an exec.
    in_storm: bool,
}

impl Watch {
    /// Starts with the best tracer on this machine.
    pub fn start(root: &Root, settings: Settings) -> Self {
        Self::with(Tracer::start(root), settings)
    }

    /// Starts with this tracer.
    pub fn with(tracer: Tracer, settings: Settings) -> Self {
        let settings = Settings { sees_uses: tracer.sees_uses(), ..settings };
        Self { tracer, learner: Learner::new(settings), in_storm: false }
    }

    /// The source of trace events.
    pub fn source(&self) -> &Source {
        self.tracer.source()
    }

    /// See [`super::Trace::sees_uses`].
    pub fn sees_uses(&self) -> bool {
        self.tracer.sees_uses()
    }

    /// See [`super::Trace::others_reads`].
    pub fn others_reads(&self) -> Option<Arc<dyn OthersReads>> {
        self.tracer.others_reads()
    }

    /// The number of launches being recorded.
    pub fn learning(&self) -> usize {
        self.learner.recording()
    }

    /// Waits for events, for at most `at_most` and less while a launch is recorded, and reports observations. An exec is reported before the tracer
    /// attaches to it, which may take some milliseconds. `now` is the clock.
    pub fn poll(&mut self, at_most: Duration, now: &dyn Fn() -> Now, listener: &mut dyn TraceListener) {
        self.tracer.wait(at_most.min(self.pace()));
        let at = now();
        let mut seen = Vec::new();
        self.tracer.read(|event| seen.push(event));
        self.in_storm = seen.iter().any(|event| matches!(event, TraceEvent::Exec(_)));
        for event in seen {
            self.take(event, at, listener);
        }
        if self.tracer.has_lost_children() {
            self.learner.add(&TraceEvent::Lost(1), at);
        }
        for finished in self.learner.over(at) {
            self.tracer.forget(finished.id);
            listener.observe(Observation::Launch(finished));
        }
    }

    fn pace(&self) -> Duration {
        if self.in_storm {
            STORM_PACE
        } else if self.learner.recording() > 0 {
            LEARNING_PACE
        } else {
            Duration::MAX
        }
    }

    fn take(&mut self, event: TraceEvent, now: Now, listener: &mut dyn TraceListener) {
        self.learner.add(&event, now);
        match event {
            TraceEvent::Exec(exec) => self.exec(exec, now, listener),
            TraceEvent::Exit { pid, at, .. } => listener.observe(Observation::Exit { pid, at }),
            TraceEvent::Lost(events) => {
                listener.observe(Observation::Trouble(format!(
                    "the tracer lost {events} events for lack of room; the launches being learned are incomplete"
                )));
                listener.observe(Observation::Lost);
            }
            _ => {}
        }
    }

    fn exec(&mut self, mut exec: Exec, now: Now, listener: &mut dyn TraceListener) {
        let lineage = self.learner.lineage(&exec);
        if let Lineage::Part(launch) = lineage {
            self.join(&mut exec, launch, now);
            return listener.observe(Observation::Exec(exec, None));
        }
        let was_within = exec.launch.take().is_some() || lineage != Lineage::Apart;
        let known =
            exec.program.as_ref().map(|program| listener.state_of(program, &exec)).unwrap_or_default();
        let begun = self.learner.begin(&exec, known, now);
        let pid = exec.pid;
        listener.observe(Observation::Exec(exec, begun));
        match begun {
            Some(launch) => {
                self.learner.give(launch, self.tracer.given(pid));
                self.learn(launch, pid, now, listener);
            }
            None if was_within => self.tracer.assign(pid, None),
            None => {}
        }
    }

    fn learn(&mut self, launch: LaunchId, pid: u32, now: Now, listener: &mut dyn TraceListener) {
        match self.tracer.learn(launch, pid) {
            Ok(children) => self.add_children(launch, pid, &children, now),
            Err(why) => {
                self.learner.drop_launch(launch);
                listener.observe(Observation::Trouble(format!("a launch cannot be learned: {why}")));
            }
        }
    }

    /// Before any later event: the exit of the first process may be the next one.
    fn add_children(&mut self, launch: LaunchId, parent: u32, children: &[u32], now: Now) {
        for pid in children {
            self.learner.add(&TraceEvent::Fork { pid: *pid, parent, launch }, now);
        }
    }

    /// Adds a process that runs the launch's program; the tracer may not know yet that it belongs to the launch.
    fn join(&mut self, exec: &mut Exec, launch: LaunchId, now: Now) {
        if exec.launch.is_some() {
            self.tracer.assign(exec.pid, Some(launch));
            self.add_children(launch, exec.parent, &[exec.pid], now);
        } else {
            let children = self.tracer.learn(launch, exec.pid);
            self.add_children(launch, exec.parent, &[exec.pid], now);
            match children {
                Ok(children) => self.add_children(launch, exec.pid, &children, now),
                Err(_) => self.learner.add(&TraceEvent::Lost(1), now),
            }
        }
        exec.launch = Some(launch);
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::BorrowedFd;

    use super::*;
    use crate::trace::memory_files::MemoryFiles;
    use crate::trace::method::{Trace, TraceError};
    use eke_prefetch_model::launch::LaunchEnd;
    use eke_prefetch_model::source::TraceMethod;

    /// Reports one program's start.
    #[derive(Debug)]
    struct OneStart {
        start: Option<Exec>,
        has_lost_children: bool,
        sees_uses: bool,
    }

    impl Trace for OneStart {
        fn wait(&mut self, _: Duration) {}

        fn read(&mut self, each: &mut dyn FnMut(TraceEvent)) {
            self.start.take().map(TraceEvent::Exec).into_iter().for_each(each);
        }

        fn learn(&mut self, _: LaunchId, _: u32) -> Result<Vec<u32>, TraceError> {
            Ok(Vec::new())
        }

        fn assign(&mut self, _: u32, _: Option<LaunchId>) {}

        fn has_lost_children(&mut self) -> bool {
            self.has_lost_children
        }

        fn sees_uses(&self) -> bool {
            self.sees_uses
        }

        fn forget(&mut self, _: LaunchId) {}

        fn fd(&self) -> Option<BorrowedFd<'_>> {
            None
        }
    }

    #[derive(Default)]
    struct Ends(Vec<LaunchEnd>);

    impl TraceListener for Ends {
        fn state_of(&mut self, _: &Program, _: &Exec) -> ProgramState {
            ProgramState::default()
        }

        fn observe(&mut self, observation: Observation) {
            if let Observation::Launch(finished) = observation {
                self.0.push(finished.launch.ended);
            }
        }
    }

    /// How a launch ends that touches nothing.
    fn end(has_lost_children: bool, sees_uses: bool) -> Vec<LaunchEnd> {
        let exec = Exec {
            pid: u32::MAX,
            parent: 1,
            uid: 1000,
            group: 1,
            session: None,
            ino: None,
            at: Duration::ZERO,
            launch: None,
            program: Some(Program::of_exe("/usr/bin/x")),
        };
        let trace = OneStart { start: Some(exec), has_lost_children, sees_uses };
        let dir = tempfile::tempdir().unwrap();
        let files = MemoryFiles::new(&Root::at(dir.path()));
        let tracer = Tracer::of(files, TraceMethod::Bpf, Box::new(trace), Vec::new());
        let (mut watch, mut ends) = (Watch::with(tracer, Settings::default()), Ends::default());
        for s in [0, 9] {
            let now = Now { mono: Duration::from_secs(s), real_ns: 0 };
            watch.poll(Duration::ZERO, &|| now, &mut ends);
        }
        ends.0
    }

    #[test]
    fn a_launch_whose_children_were_not_all_found_is_incomplete() {
        assert_eq!(end(true, true), [LaunchEnd::Lost]);
        assert_eq!(end(false, true), [LaunchEnd::Quiet]);
    }

    #[test]
    fn the_learner_hears_whether_uses_are_reported() {
        assert_eq!(end(false, false), [LaunchEnd::WithoutUses]);
    }
}

//! A tracer and a learner together: what happened, and the launches that were learned.

use std::time::Duration;

use eke_linux::Root;

use super::tracer::Tracer;
use eke_prefetch_model::learn::{Exec, Finished, Known, LaunchId, Learner, Now, Seen, Settings};
use eke_prefetch_model::program::Program;
use eke_prefetch_model::source::Source;

/// While something is learned the tracer is read so often, so that what it sees fits its buffer.
const LEARNING_PACE: Duration = Duration::from_millis(100);
/// After an exec others follow, of which the tracer does not tell at once.
const STORM_PACE: Duration = Duration::from_millis(5);

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum News {
    /// A program was executed, perhaps within a launch of another; learned from now on if it has a number.
    Exec(Exec, Option<LaunchId>),
    /// A process ended.
    Exit {
        /// The process.
        pid: u32,
        /// When, by CLOCK_MONOTONIC.
        at: Duration,
    },
    /// A launch that was learned is over.
    Launch(Finished),
    /// What went wrong, in words: a launch that cannot be learned, events that were lost.
    Trouble(String),
}

/// The receiver of events.
pub trait Listen {
    /// What is kept of a program that is executed.
    fn known(&mut self, program: &Program) -> Known;

    /// Something happened.
    fn hear(&mut self, news: News);
}

/// A tracer and what it is used for.
#[derive(Debug)]
pub struct Watch {
    tracer: Tracer,
    learner: Learner,
    /// The last poll saw an exec.
    in_storm: bool,
}

impl Watch {
    /// With the best tracer that this machine allows.
    pub fn start(root: &Root, settings: Settings) -> Self {
        Self::with(Tracer::start(root), settings)
    }

    /// With this tracer.
    pub fn with(tracer: Tracer, settings: Settings) -> Self {
        Self { tracer, learner: Learner::new(settings), in_storm: false }
    }

    /// Where its knowledge comes from.
    pub fn source(&self) -> &Source {
        self.tracer.source()
    }

    /// How many launches are being learned.
    pub fn learning(&self) -> usize {
        self.learner.live()
    }

    /// Waits until something happens, at most so long, and less while something is learned; tells what happened. An exec is told before the
    /// tracer turns to it, which may take it some milliseconds. `now` is the clock.
    pub fn poll(&mut self, at_most: Duration, now: &dyn Fn() -> Now, listener: &mut dyn Listen) {
        self.tracer.wait(at_most.min(self.pace()));
        let at = now();
        let mut seen = Vec::new();
        self.tracer.read(|event| seen.push(event));
        self.in_storm = seen.iter().any(|event| matches!(event, Seen::Exec(_)));
        for event in seen {
            self.take(event, at, listener);
        }
        for finished in self.learner.over(at) {
            self.tracer.forget(finished.id);
            listener.hear(News::Launch(finished));
        }
    }

    fn pace(&self) -> Duration {
        if self.in_storm {
            STORM_PACE
        } else if self.learner.live() > 0 {
            LEARNING_PACE
        } else {
            Duration::MAX
        }
    }

    fn take(&mut self, event: Seen, now: Now, listener: &mut dyn Listen) {
        self.learner.see(&event, now);
        match event {
            Seen::Exec(exec) => self.exec(exec, now, listener),
            Seen::Exit { pid, at, .. } => listener.hear(News::Exit { pid, at }),
            Seen::Lost(events) => listener.hear(News::Trouble(format!(
                "the tracer lost {events} events: there was no room for them, and the launches that are being learned were not seen whole"
            ))),
            _ => {}
        }
    }

    fn exec(&mut self, mut exec: Exec, now: Now, listener: &mut dyn Listen) {
        if let Some(launch) = self.learner.launch_of(&exec) {
            self.join(&mut exec, launch, now);
            return listener.hear(News::Exec(exec, None));
        }
        let known = exec.program.as_ref().map(|program| listener.known(program)).unwrap_or_default();
        let begun = self.learner.begin(&exec, known, now);
        let pid = exec.pid;
        listener.hear(News::Exec(exec, begun));
        let Some(launch) = begun else { return };
        if let Err(why) = self.tracer.learn(launch, pid) {
            self.learner.drop_launch(launch);
            listener.hear(News::Trouble(format!("a launch cannot be learned: {why}")));
        }
    }

    /// A child that was there before the tracer knew of the launch.
    fn join(&mut self, exec: &mut Exec, launch: LaunchId, now: Now) {
        if exec.launch.is_none() && self.tracer.learn(launch, exec.pid).is_err() {
            self.learner.see(&Seen::Lost(1), now);
        }
        exec.launch = Some(launch);
        self.learner.see(&Seen::Fork { pid: exec.pid, launch }, now);
    }
}

//! Runs a session in a box, and reads what it tells while it runs.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use eke_linux::Root;
use eke_model::units::Bytes;
use eke_sandbox::cgroup_box::{self, BoxSpec, Output, Sink, Swap};
use rustix::pipe::{PipeFlags, pipe_with};

use super::{End, Event, Spec, figures};

/// signal(7).
const SIGKILL: i32 = 9;

/// The box of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Box {
    /// Its budget.
    pub memory: Bytes,
    /// May it use the machine's swap?
    pub swap: bool,
    /// Its swappiness; `None` for the machine's.
    pub swappiness: Option<u32>,
    /// The driver with all its arguments.
    pub command: Vec<OsString>,
}

/// A session that is over.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Run {
    /// What happened, in order.
    pub events: Vec<Event>,
    /// What the box saw.
    pub report: cgroup_box::Report,
}

impl Run {
    /// Does it say anything about memory? Not if it could not even begin, or if its driver gave up.
    pub fn was_held(&self) -> bool {
        let ready = self.events.iter().any(|event| matches!(event, Event::Ready { .. }));
        match figures::end(&self.events) {
            Some(End::Failed { .. }) => ready,
            Some(_) => true,
            None => self.report.exit_code.is_none(),
        }
    }

    /// How it ended, in words.
    pub fn end_in_words(&self) -> String {
        let cgroup_box::Report { exit_code, signal, over_budget, .. } = self.report;
        match (figures::end(&self.events), exit_code, signal) {
            (None, Some(code), _) => {
                format!("the session's driver ended without a word (exit status {code}); see what it printed")
            }
            (None, None, Some(signal)) if signal != SIGKILL => {
                format!("the session's driver died of signal {signal}")
            }
            (None, ..) if over_budget => "the box stayed over its budget and was killed".to_owned(),
            _ => figures::end_in_words(&self.events),
        }
    }
}

/// Why a session could not be held.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No box.
    #[error(transparent)]
    Box(#[from] cgroup_box::Error),
    /// Its pipe.
    #[error("cannot hear what the session in the box tells: {0}")]
    Pipe(#[source] io::Error),
    /// The driver says what nobody understands.
    #[error("the session in the box says {line:?}, which is no event: {source}")]
    Foreign {
        /// What it said.
        line: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The thread that runs the box panicked.
    #[error("the supervisor of the box ended without a word")]
    Supervisor,
}

/// Runs the session in `place` to its end, or until `shutdown` is set. Every event is told to `heard` as it comes; while that
/// works, the session goes on.
///
/// # Errors
/// No box, or a driver that is none.
pub fn in_box(
    root: &Root,
    place: &Box,
    shutdown: &AtomicBool,
    heard: &mut dyn FnMut(&Event),
) -> Result<Run, Error> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).map_err(|e| Error::Pipe(e.into()))?;
    let spec = box_of(place, Sink::new(writer));
    std::thread::scope(|scope| {
        // The box and with it the last copy of the sink is gone when the box is.
        let supervisor = scope.spawn(move || cgroup_box::run(root, &spec, shutdown));
        let events = listen(BufReader::new(std::fs::File::from(reader)), heard);
        let report = supervisor.join().map_err(|_| Error::Supervisor)??;
        Ok(Run { events: events?, report })
    })
}

fn box_of(place: &Box, sink: Sink) -> BoxSpec {
    BoxSpec {
        swap: if place.swap { Swap::Machines } else { Swap::Forbidden },
        swappiness: place.swappiness,
        output: Output::Into(sink),
        ..BoxSpec::new(place.memory, place.command.clone())
    }
}

/// All lines to the end, also after one that is no event: the writer must not wait for a reader that left. A last line
/// that was cut off is what a killed driver leaves.
fn listen(mut lines: impl BufRead, heard: &mut dyn FnMut(&Event)) -> Result<Vec<Event>, Error> {
    let (mut events, mut wrong, mut line) = (Vec::new(), None, String::new());
    while lines.read_line(&mut line).map_err(Error::Pipe)? > 0 {
        match serde_json::from_str::<Event>(&line) {
            Ok(event) => {
                heard(&event);
                events.push(event);
            }
            Err(source) if line.ends_with('\n') => {
                wrong.get_or_insert(Error::Foreign { line: line.trim_end().to_owned(), source });
            }
            Err(_) => {}
        }
        line.clear();
    }
    wrong.map_or(Ok(events), Err)
}

/// The driver of windows that `program` (`eke`) is, for a session of the programs in `tree`.
pub fn of_windows(program: &Path, tree: &Path, spec: &Spec) -> Vec<OsString> {
    let spec = serde_json::to_string(spec).unwrap_or_default();
    let words: [&OsStr; 6] = [
        program.as_ref(),
        "lab".as_ref(),
        "session".as_ref(),
        "--chroot".as_ref(),
        tree.as_ref(),
        spec.as_ref(),
    ];
    words.map(OsString::from).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard_of(text: &str) -> (Result<Vec<Event>, Error>, usize) {
        let mut heard = 0;
        let events = listen(text.as_bytes(), &mut |_| heard += 1);
        (events, heard)
    }

    #[test]
    fn a_run_that_could_not_begin_says_nothing_about_memory() {
        let failed = Event::Ended(End::Failed { why: "no viewer".into() });
        let run = |events: &[Event], exit_code, signal| Run {
            events: events.to_vec(),
            report: cgroup_box::Report { exit_code, signal, ..cgroup_box::Report::default() },
        };
        let ready = Event::Ready { seconds: 1.0 };
        for (run, held, words) in [
            (run(std::slice::from_ref(&failed), Some(1), None), false, "no viewer"),
            (run(&[ready.clone(), failed], Some(1), None), true, "no viewer"),
            (run(&[], Some(2), None), false, "ended without a word (exit status 2)"),
            (run(&[], None, Some(11)), true, "died of signal 11"),
            (run(&[ready], None, Some(9)), true, "was killed for want of memory"),
            (run(&[Event::Ended(End::Finished)], Some(0), None), true, figures::ALL_DONE),
        ] {
            assert!(run.was_held() == held && run.end_in_words().contains(words), "{run:?}");
        }
    }

    #[test]
    fn a_driver_that_was_killed_in_a_line_has_told_the_others() {
        let (events, heard) = heard_of("{\"event\":\"ready\",\"seconds\":1.0}\n{\"event\":\"open");
        assert_eq!((events.unwrap(), heard), (vec![Event::Ready { seconds: 1.0 }], 1));
    }

    #[test]
    fn what_is_no_event_is_an_error_that_says_it() {
        let (events, heard) = heard_of("hello\n{\"event\":\"ready\",\"seconds\":1.0}\n");
        let error = events.unwrap_err().to_string();
        assert!(error.starts_with("the session in the box says \"hello\""), "{error}");
        assert_eq!(heard, 1, "it is read to its end all the same");
    }
}

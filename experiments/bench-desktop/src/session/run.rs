//! Runs a session in a box and reads its events while it runs.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use eke_linux::Root;
use eke_model::units::Bytes;
use eke_sandbox::cgroup_box::{self, BoxSpec, Output, Sink, Swap};
use rustix::pipe::{PipeFlags, pipe_with};

use super::{End, Event, Spec, metrics};

/// The signal's number (signal(7)).
const SIGKILL: i32 = 9;

/// The settings of a session's box.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionBox {
    /// The memory budget.
    pub memory: Bytes,
    /// Whether the session may use the machine's swap.
    pub swap: bool,
    /// The box's swappiness; `None` for the machine's.
    pub swappiness: Option<u32>,
    /// The driver with all its arguments.
    pub command: Vec<OsString>,
}

/// A finished session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionRun {
    /// The events, in order.
    pub events: Vec<Event>,
    /// The report of the box.
    pub report: cgroup_box::BoxReport,
}

impl SessionRun {
    /// Whether the run measures memory: its driver neither failed to start nor gave up.
    pub fn is_valid(&self) -> bool {
        let ready = self.events.iter().any(|event| matches!(event, Event::Ready { .. }));
        match metrics::end(&self.events) {
            Some(End::Failed { .. }) => ready,
            Some(_) => true,
            None => self.report.exit_code.is_none(),
        }
    }

    /// How the session ended, as text.
    pub fn describe_end(&self) -> String {
        let cgroup_box::BoxReport { exit_code, signal, over_budget, .. } = self.report;
        match (metrics::end(&self.events), exit_code, signal) {
            (None, Some(code), _) => {
                format!(
                    "the session's driver ended without a last event (exit status {code}); see its output"
                )
            }
            (None, None, Some(signal)) if signal != SIGKILL => {
                format!("the session's driver died of signal {signal}")
            }
            (None, ..) if over_budget => "the box stayed over its budget and was killed".to_owned(),
            (None, ..) => "the box was killed for lack of memory".to_owned(),
            _ => metrics::describe_end(&self.events),
        }
    }
}

/// Why a session could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The box cannot be made.
    #[error(transparent)]
    Box(#[from] cgroup_box::Error),
    /// The pipe for events fails.
    #[error("cannot read the events of the session in the box: {0}")]
    Pipe(#[source] io::Error),
    /// A line is not an event.
    #[error("the session in the box printed {line:?}, which is no event: {source}")]
    Foreign {
        /// The line.
        line: String,
        /// Why it is not an event.
        source: serde_json::Error,
    },
    /// The thread that runs the box panicked.
    #[error("the supervisor of the box panicked")]
    Supervisor,
}

/// Runs a session in a box to its end, or until `shutdown` is set. Calls `on_event` for every event as it comes; the session
/// goes on meanwhile.
///
/// # Errors
/// The box cannot be made, or its command is not a driver.
pub fn in_box(
    root: &Root,
    settings: &SessionBox,
    shutdown: &AtomicBool,
    on_event: &mut dyn FnMut(&Event),
) -> Result<SessionRun, Error> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).map_err(|e| Error::Pipe(e.into()))?;
    let spec = box_spec(settings, Sink::new(writer));
    std::thread::scope(|scope| {
        // The last copy of the sink closes with the box: then `read_events` ends.
        let supervisor = scope.spawn(move || cgroup_box::run(root, &spec, shutdown));
        let events = read_events(BufReader::new(std::fs::File::from(reader)), on_event);
        let report = supervisor.join().map_err(|_| Error::Supervisor)??;
        Ok(SessionRun { events: events?, report })
    })
}

fn box_spec(settings: &SessionBox, sink: Sink) -> BoxSpec {
    BoxSpec {
        swap: if settings.swap { Swap::Machines } else { Swap::Forbidden },
        swappiness: settings.swappiness,
        output: Output::Into(sink),
        ..BoxSpec::new(settings.memory, settings.command.clone())
    }
}

/// Reads all lines to the end, also after one that is not an event: the writer must not block. Ignores an incomplete last
/// line, which a killed driver leaves.
fn read_events(mut lines: impl BufRead, on_event: &mut dyn FnMut(&Event)) -> Result<Vec<Event>, Error> {
    let (mut events, mut wrong, mut line) = (Vec::new(), None, String::new());
    while lines.read_line(&mut line).map_err(Error::Pipe)? > 0 {
        match serde_json::from_str::<Event>(&line) {
            Ok(event) => {
                on_event(&event);
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

/// The command of the windows driver: `program` (`eke`) with a session of the programs in `tree`.
pub fn driver_command(program: &Path, tree: &Path, spec: &Spec) -> Vec<OsString> {
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

    fn read(text: &str) -> (Result<Vec<Event>, Error>, usize) {
        let mut calls = 0;
        let events = read_events(text.as_bytes(), &mut |_| calls += 1);
        (events, calls)
    }

    #[test]
    fn a_run_that_could_not_start_does_not_measure_memory() {
        let failed = Event::Ended(End::Failed { why: "no viewer".into() });
        let run = |events: &[Event], exit_code, signal| SessionRun {
            events: events.to_vec(),
            report: cgroup_box::BoxReport { exit_code, signal, ..cgroup_box::BoxReport::default() },
        };
        let ready = Event::Ready { seconds: 1.0 };
        for (run, valid, text) in [
            (run(std::slice::from_ref(&failed), Some(1), None), false, "no viewer"),
            (run(&[ready.clone(), failed], Some(1), None), true, "no viewer"),
            (run(&[], Some(2), None), false, "ended without a last event (exit status 2)"),
            (run(&[], None, Some(11)), true, "died of signal 11"),
            (run(&[ready], None, Some(9)), true, "was killed for lack of memory"),
            (run(&[Event::Ended(End::Finished)], Some(0), None), true, metrics::ALL_DONE),
        ] {
            assert!(run.is_valid() == valid && run.describe_end().contains(text), "{run:?}");
        }
    }

    #[test]
    fn a_driver_killed_within_a_line_has_reported_the_lines_before() {
        let (events, calls) = read("{\"event\":\"ready\",\"seconds\":1.0}\n{\"event\":\"open");
        assert_eq!((events.unwrap(), calls), (vec![Event::Ready { seconds: 1.0 }], 1));
    }

    #[test]
    fn a_line_that_is_no_event_is_an_error_that_shows_it() {
        let (events, calls) = read("hello\n{\"event\":\"ready\",\"seconds\":1.0}\n");
        let error = events.unwrap_err().to_string();
        assert!(error.starts_with("the session in the box printed \"hello\""), "{error}");
        assert_eq!(calls, 1, "the lines after it are still read");
    }
}

//! The one runner of all experiments.

use std::fmt::Debug;

use eke_results::report::Report;

use crate::environment::Environment;
use crate::experiment::{Experiment, OnFailure, Results, ResultsOf};

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum Failure<E: Debug> {
    /// A signal came.
    #[error("interrupted; everything is as it was before")]
    Interrupted,
    /// Every run failed or was left out.
    #[error("no run succeeded: {}", notes.join(" "))]
    NothingMeasured {
        /// The reasons.
        notes: Vec<String>,
    },
    /// The experiment's own error.
    #[error("{0}")]
    Experiment(E),
}

/// Runs an experiment from its set-up to its teardown.
///
/// # Errors
/// See [`Failure`]. Whatever happens, the machine is as before.
pub fn run<E: Experiment>(
    experiment: &E,
    environment: &Environment<'_>,
) -> Result<Report, Failure<E::Error>> {
    let mut notes = Vec::new();
    let mut fixture =
        experiment.set_up(environment, &mut notes).map_err(|error| cause(environment, error))?;
    let results = measure_all(experiment, environment, &mut fixture, notes);
    environment.progress.done();
    let report = results.map(|results| experiment.report(environment, &mut fixture, results));
    // A failed teardown is reported even after a signal: then the machine is not as before.
    let torn_down = experiment.tear_down(fixture).map_err(Failure::Experiment);
    match report {
        Err(Failure::Interrupted) => torn_down.and(Err(Failure::Interrupted)),
        report => report.and_then(|report| torn_down.map(|()| report)),
    }
}

fn measure_all<E: Experiment>(
    experiment: &E,
    environment: &Environment<'_>,
    fixture: &mut E::Fixture<'_>,
    notes: Vec<String>,
) -> Result<ResultsOf<E>, Failure<E::Error>> {
    let plan = experiment.plan(fixture);
    let mut planned = plan.len();
    let mut results = Results { measured: Vec::new(), notes };
    environment.progress.planned(planned);
    for (tried, run) in plan.into_iter().enumerate() {
        let outcome = one(experiment, environment, fixture, &run, &mut results.notes);
        // A signal reaches the programs of a run, too, and cuts measurements short.
        if environment.is_interrupted() {
            return Err(Failure::Interrupted);
        }
        match outcome {
            Ok(Outcome::Measured(measurement)) => results.measured.push((run, measurement)),
            Ok(Outcome::NotMeasured) => {}
            Ok(Outcome::LeftOut) => {
                planned -= 1;
                environment.progress.planned(planned);
            }
            Err(error) => {
                let after = experiment.on_failure(fixture, &error, tried);
                let name = experiment.name(fixture, &run);
                let note = match after {
                    OnFailure::Abort => return Err(Failure::Experiment(error)),
                    OnFailure::LeaveOut => format!("{name}: this run failed and is left out: {error}."),
                    OnFailure::EndEarly => {
                        format!("The experiment ended after {tried} runs. {name}: this run failed: {error}.")
                    }
                };
                environment.progress.print(&note);
                results.notes.push(note);
                if after == OnFailure::EndEarly {
                    break;
                }
            }
        }
    }
    if results.measured.is_empty() {
        return Err(Failure::NothingMeasured { notes: results.notes });
    }
    Ok(results)
}

/// What became of a run that did not fail.
enum Outcome<M> {
    Measured(M),
    NotMeasured,
    LeftOut,
}

fn one<E: Experiment>(
    experiment: &E,
    environment: &Environment<'_>,
    fixture: &mut E::Fixture<'_>,
    run: &E::Run,
    notes: &mut Vec<String>,
) -> Result<Outcome<E::Measurement>, E::Error> {
    if environment.is_interrupted() || !experiment.prepare(fixture, run, notes)? {
        return Ok(Outcome::LeftOut);
    }
    environment.progress.begins(&experiment.name(fixture, run));
    Ok(experiment.measure(fixture, run, notes)?.map_or(Outcome::NotMeasured, Outcome::Measured))
}

/// After a signal, that is the news: it also reaches helpers (`mke2fs`, `ip`), and their failures mean nothing.
fn cause<E: std::error::Error>(environment: &Environment<'_>, error: E) -> Failure<E> {
    if environment.is_interrupted() { Failure::Interrupted } else { Failure::Experiment(error) }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use eke_linux::Root;
    use eke_present::progress::Progress;
    use eke_results::report::Report;

    use super::*;

    /// Everything that happens, in order.
    #[derive(Default)]
    struct Log(RefCell<Vec<String>>);

    impl Log {
        fn add(&self, line: &str) {
            self.0.borrow_mut().push(line.to_owned());
        }
    }

    /// A mock: runs are words. `fail...` fails, `skip` is not prepared, `empty` has no measurement, `signal` interrupts.
    struct Mock<'a> {
        runs: &'a [&'static str],
        on_failure: OnFailure,
        shutdown: &'a AtomicBool,
        broken_set_up: bool,
        broken_teardown: bool,
        log: Rc<Log>,
    }

    #[derive(Debug, PartialEq, thiserror::Error)]
    #[error("{0}")]
    struct Broken(&'static str);

    /// Logs its drop, as a fixture that takes itself down.
    struct Disk(Rc<Log>);

    impl Drop for Disk {
        fn drop(&mut self) {
            self.0.add("drop");
        }
    }

    impl Experiment for Mock<'_> {
        type Fixture<'e>
            = Disk
        where
            Self: 'e;
        type Run = &'static str;
        type Measurement = usize;
        type Error = Broken;

        fn set_up<'e>(
            &'e self,
            _: &'e Environment<'e>,
            notes: &mut Vec<String>,
        ) -> Result<Self::Fixture<'e>, Broken> {
            notes.push("bfq is left out: this kernel has no bfq.".into());
            if self.broken_set_up { Err(Broken("no disk")) } else { Ok(Disk(Rc::clone(&self.log))) }
        }

        fn plan(&self, _: &Disk) -> Vec<&'static str> {
            self.runs.to_vec()
        }

        fn name(&self, _: &Disk, run: &&'static str) -> String {
            format!("run {run}")
        }

        fn prepare(&self, _: &mut Disk, run: &&'static str, notes: &mut Vec<String>) -> Result<bool, Broken> {
            let is_ready = *run != "skip";
            if !is_ready {
                notes.push("skip has no CPU.".into());
            }
            Ok(is_ready)
        }

        fn measure(
            &self,
            _: &mut Disk,
            run: &&'static str,
            notes: &mut Vec<String>,
        ) -> Result<Option<usize>, Broken> {
            match *run {
                "signal" => {
                    self.shutdown.store(true, Ordering::Relaxed);
                    Err(Broken("mke2fs was killed"))
                }
                "empty" => {
                    notes.push("empty has no session.".into());
                    Ok(None)
                }
                run if run.starts_with("fail") => Err(Broken("no answer")),
                run => Ok(Some(run.len())),
            }
        }

        fn on_failure(&self, _: &Disk, _: &Broken, tried: usize) -> OnFailure {
            self.log.add(&format!("failed after {tried}"));
            self.on_failure
        }

        fn report(
            &self,
            environment: &Environment<'_>,
            _: &mut Disk,
            results: Results<&'static str, usize>,
        ) -> Report {
            self.log.add(&format!("report {:?}", results.measured));
            Report { notes: results.notes, ..environment.report("mock") }
        }

        fn tear_down(&self, fixture: Disk) -> Result<(), Broken> {
            self.log.add("teardown");
            drop(fixture);
            if self.broken_teardown { Err(Broken("the disk is in use")) } else { Ok(()) }
        }
    }

    impl Progress for Log {
        fn planned(&self, runs: usize) {
            self.add(&format!("planned {runs}"));
        }
        fn begins(&self, run: &str) {
            self.add(run);
        }
        fn doing(&self, _: &str) {}
        fn done(&self) {
            self.add("done");
        }
        fn print(&self, line: &str) {
            self.add(line);
        }
    }

    /// The result of these runs, and everything that happened.
    fn ran(
        runs: &[&'static str],
        change: impl FnOnce(&mut Mock<'_>),
    ) -> (Result<Vec<String>, String>, Vec<String>) {
        let (root, shutdown, log) = (Root::host(), AtomicBool::new(false), Rc::new(Log::default()));
        let environment = Environment {
            root: &root,
            program: "/usr/bin/eke-bench".into(),
            cache: "/nonexistent".into(),
            command: "eke bench mock".into(),
            provenance: eke_results::report::Provenance::default(),
            progress: &*log,
            shutdown: &shutdown,
        };
        let mut mock = Mock {
            runs,
            on_failure: OnFailure::LeaveOut,
            shutdown: &shutdown,
            broken_set_up: false,
            broken_teardown: false,
            log: Rc::clone(&log),
        };
        change(&mut mock);
        let report = run(&mock, &environment);
        let report = report.map(|report| {
            assert_eq!((report.experiment.as_str(), report.command.as_str()), ("mock", "eke bench mock"));
            let settings = report.provenance.map(|from| from.settings).unwrap_or_default();
            assert!(settings.contains_key("vm.swappiness"), "{settings:?}");
            report.notes
        });
        (report.map_err(|e| e.to_string()), log.0.take())
    }

    const LEFT_OUT: &str = "bfq is left out: this kernel has no bfq.";

    #[test]
    fn runs_are_made_in_order_and_the_fixture_is_torn_down_after_the_report() {
        let (report, log) = ran(&["a", "bb"], |_| ());
        assert_eq!(report.unwrap(), [LEFT_OUT]);
        let measured = r#"report [("a", 1), ("bb", 2)]"#;
        assert_eq!(log, ["planned 2", "run a", "run bb", "done", measured, "teardown", "drop"]);
    }

    #[test]
    fn a_run_that_fails_is_left_out_with_its_reason() {
        let (report, log) = ran(&["fail", "a"], |_| ());
        let note = "run fail: this run failed and is left out: no answer.";
        assert_eq!(report.unwrap(), [LEFT_OUT, note]);
        assert_eq!(log[..5], ["planned 2", "run fail", "failed after 0", note, "run a"]);
    }

    #[test]
    fn runs_without_a_measurement_leave_their_notes() {
        let (report, log) = ran(&["skip", "empty", "a"], |_| ());
        assert_eq!(report.unwrap(), [LEFT_OUT, "skip has no CPU.", "empty has no session."]);
        assert_eq!(log[..4], ["planned 3", "planned 2", "run empty", "run a"]);
    }

    #[test]
    fn an_error_that_aborts_ends_the_experiment_and_tears_it_down() {
        let (report, log) = ran(&["a", "fail", "b"], |mock| mock.on_failure = OnFailure::Abort);
        assert_eq!(report.unwrap_err(), "no answer");
        assert_eq!(log[2..], ["run fail", "failed after 1", "done", "teardown", "drop"]);
    }

    #[test]
    fn an_experiment_that_ends_early_keeps_its_measurements() {
        let (report, log) = ran(&["a", "fail", "b"], |mock| mock.on_failure = OnFailure::EndEarly);
        let note = "The experiment ended after 1 runs. run fail: this run failed: no answer.";
        assert_eq!(report.unwrap(), [LEFT_OUT, note]);
        assert_eq!(log[4..], [note, "done", r#"report [("a", 1)]"#, "teardown", "drop"]);
    }

    #[test]
    fn without_any_measurement_the_reasons_are_the_error() {
        let (report, log) = ran(&["fail", "skip"], |_| ());
        assert_eq!(
            report.unwrap_err(),
            format!(
                "no run succeeded: {LEFT_OUT} run fail: this run failed and is left out: no answer. skip has no CPU."
            )
        );
        assert_eq!(log[log.len() - 3..], ["done", "teardown", "drop"]);
    }

    #[test]
    fn a_signal_ends_it_whatever_failed_by_it() {
        let (report, log) = ran(&["a", "signal", "b"], |_| ());
        assert_eq!(report.unwrap_err(), "interrupted; everything is as it was before");
        assert_eq!(log[2..], ["run signal", "done", "teardown", "drop"]);
        let (report, _) = ran(&["a", "signal"], |mock| mock.broken_teardown = true);
        assert_eq!(report.unwrap_err(), "the disk is in use", "the machine is not as before");
    }

    #[test]
    fn failures_of_the_set_up_and_of_the_teardown_are_errors() {
        let (report, log) = ran(&["a"], |mock| mock.broken_set_up = true);
        assert_eq!((report.unwrap_err().as_str(), log.len()), ("no disk", 0));
        let (report, _) = ran(&["a"], |mock| {
            mock.broken_set_up = true;
            mock.shutdown.store(true, Ordering::Relaxed);
        });
        assert_eq!(report.unwrap_err(), "interrupted; everything is as it was before");
        let (report, _) = ran(&["a"], |mock| mock.broken_teardown = true);
        assert_eq!(report.unwrap_err(), "the disk is in use");
    }
}

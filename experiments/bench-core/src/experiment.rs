//! What an experiment is: a plan of runs, each measured from the same fixture.

use eke_results::report::Report;
use eke_statistics::random::Random;

use crate::environment::Environment;

/// An experiment. Its value carries the options that the user chose; [`crate::run`] runs it.
///
/// The runner calls `set_up`, `plan`, then `prepare` and `measure` for each run in order, `report`, and `tear_down`. It also
/// shows the progress, stops at a signal, and decides with `on_failure` what a failed run means for the others.
pub trait Experiment: Sized {
    /// The reason for needing root, as in `an experiment makes a slow disk, which needs root`; `None` if it needs none.
    const NEEDS_ROOT: Option<&'static str> = None;

    /// What runs share: disks, servers, calibrations. Dropping it takes everything down, without errors.
    type Fixture<'e>
    where
        Self: 'e;
    /// One run of the plan.
    type Run;
    /// The outcome of one run.
    type Measurement;
    /// A failure of the set-up, of a run, or of the teardown.
    type Error: std::error::Error;

    /// Checks the options, removes what dead experiments left, and makes what all runs share. `notes` go into the report: what
    /// is left out on this machine, and why.
    ///
    /// # Errors
    /// Something is missing, or the kernel refuses. Nothing is left then.
    fn set_up<'e>(
        &'e self,
        environment: &'e Environment<'e>,
        notes: &mut Vec<String>,
    ) -> Result<Self::Fixture<'e>, Self::Error>;

    /// All runs, in order. Pure.
    fn plan(&self, fixture: &Self::Fixture<'_>) -> Vec<Self::Run>;

    /// The run's name in the progress and in notes: `eke, 2 of 3`.
    fn name(&self, fixture: &Self::Fixture<'_>, run: &Self::Run) -> String;

    /// Makes what this run shares with the next ones but not with the one before: another disk, another CPU. `false` leaves the
    /// run out; `notes` have the reason.
    ///
    /// # Errors
    /// As [`Experiment::measure`].
    fn prepare(
        &self,
        _fixture: &mut Self::Fixture<'_>,
        _run: &Self::Run,
        _notes: &mut Vec<String>,
    ) -> Result<bool, Self::Error> {
        Ok(true)
    }

    /// Makes one run. `None` is a run without a measurement; `notes` have the reason.
    ///
    /// # Errors
    /// The run failed. [`Experiment::on_failure`] decides what follows.
    fn measure(
        &self,
        fixture: &mut Self::Fixture<'_>,
        run: &Self::Run,
        notes: &mut Vec<String>,
    ) -> Result<Option<Self::Measurement>, Self::Error>;

    /// What follows from the failure of a run after `tried` others. By default the experiment fails.
    fn on_failure(&self, _fixture: &Self::Fixture<'_>, _error: &Self::Error, _tried: usize) -> OnFailure {
        OnFailure::Abort
    }

    /// The report. It has at least one measurement, and all notes.
    fn report(
        &self,
        environment: &Environment<'_>,
        fixture: &mut Self::Fixture<'_>,
        results: ResultsOf<Self>,
    ) -> Report;

    /// Called when the report is printed and its files are written. Removes what only an interrupted run needs to go on.
    fn written(&self, _environment: &Environment<'_>) {}

    /// Takes the fixture down in order, so that an error is seen.
    ///
    /// # Errors
    /// Something is still in use.
    fn tear_down(&self, fixture: Self::Fixture<'_>) -> Result<(), Self::Error> {
        drop(fixture);
        Ok(())
    }

    /// Do the user's words cause this error? The exit status depends on it.
    fn is_usage(_error: &Self::Error) -> bool {
        false
    }
}

/// What follows from a failed run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// The experiment fails.
    Abort,
    /// A note says why the run has no measurement, and the next run begins.
    LeaveOut,
    /// No more runs follow; the measurements until now make the report.
    EndEarly,
}

/// All measurements, in the order of their runs, and all notes.
#[derive(Debug, Clone, PartialEq)]
pub struct Results<R, M> {
    /// Each run that has a measurement.
    pub measured: Vec<(R, M)>,
    /// For the report, in order: what was left out, what failed.
    pub notes: Vec<String>,
}

/// The results of an experiment.
pub type ResultsOf<E> = Results<<E as Experiment>::Run, <E as Experiment>::Measurement>;

/// Every item once, in an order of chance, so that what a round warms up or wears out favours none. Every second round has the
/// order before it reversed: few rounds are balanced, too. The same in each call.
pub fn shuffled<T: Clone>(items: &[T], round: usize) -> Vec<T> {
    let mut order = items.to_vec();
    Random::new(round as u64 / 2).shuffle(&mut order);
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_has_every_item_and_every_second_one_is_reversed() {
        let items: Vec<u8> = (0..8).collect();
        let rounds: Vec<Vec<u8>> = (0..6).map(|round| shuffled(&items, round)).collect();
        for (number, round) in rounds.iter().enumerate() {
            let mut sorted = round.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, items);
            assert_eq!(*round, shuffled(&items, number), "the same in each call");
        }
        let reversed = |round: &[u8]| round.iter().rev().copied().collect::<Vec<_>>();
        assert_eq!(rounds[1], reversed(&rounds[0]));
        assert!(rounds[2] != rounds[0] && rounds[2] != rounds[1]);
        assert!(shuffled::<u8>(&[], 2).is_empty());
    }
}

//! Documents in the small machine: the same experiment where nothing is charged by hand, so that zswap and zstd take part.
//!
//! - [`place`]: what a guest needs of this machine, found and put on its disk
//! - [`field`]: which machines, and who takes part
//! - [`figures`]: from a guest's outcome to rows; pure

mod field;
mod figures;
mod place;

use std::collections::BTreeMap;
use std::time::Duration;

use eke_model::units::Bytes;
use eke_results::report::{Machine, Report};
use eke_results::rows::Rows;

use crate::experiment::{Bench, Error, field::doing};
use crate::guest::{self, GuestOutcome, GuestRun, Peer};
use crate::study;
use field::Small;
use figures::Run;
use place::Place;

/// Pages of a document: a fifth of a second each on a real CPU, seconds here.
const PAGES: u32 = 5;
/// The longest that one run may take, with its boot.
const LIMIT: Duration = Duration::from_secs(600);
/// What a run takes, seen on two CPUs: between 70 s for one that is soon killed and the limit.
const USUAL: Duration = Duration::from_secs(240);

/// Holds the experiment.
///
/// # Errors
/// What it needs is missing, or a peer cannot be set up; nothing is left then.
pub fn run(bench: &Bench) -> Result<Report, Error> {
    let place = Place::prepare(bench)?;
    let machines = field::machines(&bench.options);
    let peers = field::chosen(&bench.options)?;
    let mut trials =
        Trials { bench, place, measured: BTreeMap::new(), rows: Rows::default(), runs: Vec::new() };
    trials.all(&machines, &peers)?;
    Ok(trials.report(&machines, &peers))
}

struct Trials<'a> {
    bench: &'a Bench<'a>,
    place: Place,
    /// By the machine's memory, and whether there is a disk for swap: what eke measured there, if it did.
    measured: BTreeMap<(u32, bool), String>,
    rows: Rows,
    runs: Vec<Run>,
}

impl Trials<'_> {
    /// Every peer once in each machine, then all again.
    fn all(&mut self, machines: &[Small], peers: &[Peer]) -> Result<(), Error> {
        let repeats = field::repeats(&self.bench.options);
        let runs = machines.len() * peers.len() * repeats;
        let minutes = runs as u64 * USUAL.as_secs() / 60;
        let most = LIMIT.as_secs() / 60;
        let progress = self.bench.progress;
        progress.say(&format!(
            "{runs} runs in the small machine, about {minutes} minutes in all; none takes more than {most} minutes."
        ));
        progress.planned(runs);
        for round in 1..=repeats {
            for (machine, peer) in machines.iter().flat_map(|m| peers.iter().map(move |p| (m, p))) {
                progress.begins(&format!(
                    "{}, {} MiB, {round} of {repeats}",
                    peer.name(),
                    machine.memory_mib
                ));
                self.one(machine, peer)?;
            }
        }
        progress.done();
        Ok(())
    }

    fn one(&mut self, machine: &Small, peer: &Peer) -> Result<(), Error> {
        let measured = match self.measured(machine, peer) {
            Ok(measured) => measured,
            Err(e) => return self.leave_out(machine, peer, e),
        };
        let Self { bench, place, .. } = self;
        let run = GuestRun { measured, ..place.run(machine, peer) };
        let mut tell = |event: &_| doing(event).iter().for_each(|d| bench.progress.doing(d));
        let outcome = guest::run(&place.kit, &place.image, &run, bench.shutdown, &mut tell);
        match outcome {
            Ok(outcome) => self.add(machine, peer, outcome),
            Err(e) => self.leave_out(machine, peer, e)?,
        }
        Ok(())
    }

    /// What eke goes by: measured in a boot of its own before its first run in that machine.
    fn measured(&mut self, machine: &Small, peer: &Peer) -> Result<Option<String>, guest::Error> {
        let Peer::Eke { disk, .. } = peer else { return Ok(None) };
        let key = (machine.memory_mib, *disk);
        if let Some(measured) = self.measured.get(&key) {
            return Ok(Some(measured.clone()));
        }
        self.bench.progress.doing("eke measures in a boot of its own");
        let (place, run) =
            (&self.place, self.place.run(machine, &Peer::Eke { disk: *disk, arguments: Vec::new() }));
        let measured = guest::measure(&place.kit, &place.image, &run, self.bench.shutdown)?;
        self.measured.insert(key, measured.clone());
        Ok(Some(measured))
    }

    fn add(&mut self, machine: &Small, peer: &Peer, outcome: GuestOutcome) {
        let run = Run {
            variant: peer.name(),
            memory_mib: machine.memory_mib,
            documents: self.place.documents.len(),
            outcome,
        };
        figures::add(&run, &mut self.rows);
        self.runs.push(run);
    }

    /// One peer that cannot be set up does not take hours of the others' runs with it.
    fn leave_out(&mut self, machine: &Small, peer: &Peer, error: guest::Error) -> Result<(), Error> {
        if error.is_interrupted() {
            return Err(Error::Interrupted);
        }
        if !error.is_of_one_run() {
            return Err(error.into());
        }
        let note = format!("{}, {} MiB: a run came to nothing: {error}", peer.name(), machine.memory_mib);
        self.bench.progress.say(&note);
        self.place.notes.push(note);
        Ok(())
    }

    fn report(self, machines: &[Small], peers: &[Peer]) -> Report {
        let mut notes = self.place.notes;
        notes.extend(guest::notes());
        notes.extend(machines.iter().map(Small::note));
        notes.extend(figures::notes(&self.runs, LIMIT));
        notes.extend(
            self.measured.iter().filter_map(|((mib, disk), text)| figures::measured_note(*mib, *disk, text)),
        );
        study::beside(Report {
            experiment: "capacity in the small machine".to_owned(),
            command: self.bench.command.clone(),
            machine: Machine::of(self.bench.root),
            variants: peers.iter().map(Peer::variant).collect(),
            metrics: figures::metrics(LIMIT),
            rows: self.rows.done(),
            notes,
            ..Report::default()
        })
    }
}

/// The whole number of MiB.
fn mib(bytes: Bytes) -> u64 {
    bytes.0 >> 20
}

//! Documents in the small machine: the same experiment with real RAM instead of a charged box, so zswap and zstd take part.
//!
//! - [`files`]: the guests' kernel, programs and documents, on a disk image
//! - [`machines`]: the machines and the peers; pure
//! - [`metrics`]: rows and notes from a guest's outcome; pure

pub(crate) mod files;
mod machines;
mod metrics;

use std::collections::BTreeMap;
use std::time::Duration;

use eke_bench_core::{Environment, Experiment, OnFailure, Results, shuffled};
use eke_model::units::Bytes;
use eke_results::report::Report;
use eke_results::rows::Rows;

use crate::experiment::{Error, NEEDS_ROOT, Options, comparison::doing};
use crate::guest::{self, GuestRun, Peer};
use crate::study;
use files::Files;
use machines::Small;
use metrics::Run;

/// Pages of a document. Each takes seconds here (0.2 s on a real CPU).
const PAGES: u32 = 5;
/// The longest that one run may take, with its boot.
const LIMIT: Duration = Duration::from_secs(600);
/// The usual time of a run, measured on two CPUs: between 70 s, if it is killed soon, and the limit.
const USUAL: Duration = Duration::from_secs(240);

/// The experiment.
pub struct SmallMachine(pub Options);

/// What runs share.
pub struct Fixture<'e> {
    environment: &'e Environment<'e>,
    files: Files,
    machines: Vec<Small>,
    peers: Vec<Peer>,
    /// eke's measurements, by the machine's memory and whether it has a disk for swap.
    measured: BTreeMap<(u32, bool), String>,
}

/// One run of the plan: the places of a machine and a peer, and the round from 1.
#[derive(Debug, Clone, Copy)]
pub struct Repeat {
    machine: usize,
    peer: usize,
    round: usize,
}

impl Experiment for SmallMachine {
    const NEEDS_ROOT: Option<&'static str> = Some(NEEDS_ROOT);

    type Fixture<'e> = Fixture<'e>;
    type Run = Repeat;
    type Measurement = Run;
    type Error = Error;

    fn set_up<'e>(
        &'e self,
        environment: &'e Environment<'e>,
        notes: &mut Vec<String>,
    ) -> Result<Fixture<'e>, Error> {
        let machines = machines::machines(&self.0);
        let peers = machines::chosen(&self.0)?;
        let files = Files::prepare(environment, &self.0, notes)?;
        let runs = machines.len() * peers.len() * machines::repeats(&self.0);
        let minutes = runs as u64 * USUAL.as_secs() / 60;
        let most = LIMIT.as_secs() / 60;
        environment.progress.print(&format!(
            "{runs} runs in the small machine, about {minutes} minutes in all; none takes more than {most} minutes."
        ));
        Ok(Fixture { environment, files, machines, peers, measured: BTreeMap::new() })
    }

    /// Every peer once in each machine, in an order of chance, then all again.
    fn plan(&self, fixture: &Fixture<'_>) -> Vec<Repeat> {
        let peers: Vec<usize> = (0..fixture.peers.len()).collect();
        let mut runs = Vec::new();
        for round in 0..machines::repeats(&self.0) {
            for machine in 0..fixture.machines.len() {
                let repeat = |peer| Repeat { machine, peer, round: round + 1 };
                runs.extend(shuffled(&peers, round).into_iter().map(repeat));
            }
        }
        runs
    }

    fn name(&self, fixture: &Fixture<'_>, Repeat { machine, peer, round }: &Repeat) -> String {
        let (peer, machine) = (&fixture.peers[*peer], &fixture.machines[*machine]);
        format!("{}, {} MiB, {round} of {}", peer.name(), machine.memory_mib, machines::repeats(&self.0))
    }

    fn measure(
        &self,
        fixture: &mut Fixture<'_>,
        Repeat { machine, peer, .. }: &Repeat,
        _notes: &mut Vec<String>,
    ) -> Result<Option<Run>, Error> {
        let (machine, peer) = (fixture.machines[*machine], fixture.peers[*peer].clone());
        let measured = fixture.measured(&machine, &peer)?;
        let Fixture { environment, files, .. } = fixture;
        let run = GuestRun { measured, ..files.run(&machine, &peer) };
        let mut on_event = |event: &_| doing(event).iter().for_each(|d| environment.progress.doing(d));
        let outcome = guest::run(&files.kit, &files.image, &run, environment.shutdown, &mut on_event)?;
        Ok(Some(Run {
            variant: peer.name(),
            memory_mib: machine.memory_mib,
            documents: files.documents.len(),
            outcome,
        }))
    }

    fn on_failure(&self, _fixture: &Fixture<'_>, error: &Error, _tried: usize) -> OnFailure {
        error.on_failure()
    }

    fn report(
        &self,
        environment: &Environment<'_>,
        fixture: &mut Fixture<'_>,
        results: Results<Repeat, Run>,
    ) -> Report {
        let runs: Vec<Run> = results.measured.into_iter().map(|(_, run)| run).collect();
        let mut rows = Rows::default();
        runs.iter().for_each(|run| metrics::add(run, &mut rows));
        let mut notes = results.notes;
        notes.extend(guest::notes());
        notes.extend(fixture.machines.iter().map(Small::note));
        notes.extend(metrics::notes(&runs, LIMIT));
        let measured = fixture.measured.iter();
        notes.extend(measured.filter_map(|((mib, disk), text)| metrics::measured_note(*mib, *disk, text)));
        study::beside(Report {
            variants: fixture.peers.iter().map(Peer::variant).collect(),
            metrics: metrics::metrics(LIMIT),
            rows: rows.done(),
            notes,
            ..environment.report("capacity in the small machine")
        })
    }

    fn is_usage(error: &Error) -> bool {
        error.is_usage()
    }
}

impl Fixture<'_> {
    /// eke's measurement, made in a boot of its own before its first run in that machine.
    fn measured(&mut self, machine: &Small, peer: &Peer) -> Result<Option<String>, guest::Error> {
        let Peer::Eke { disk, .. } = peer else { return Ok(None) };
        let key = (machine.memory_mib, *disk);
        if let Some(measured) = self.measured.get(&key) {
            return Ok(Some(measured.clone()));
        }
        self.environment.progress.doing("eke measures in a boot of its own");
        let (files, run) =
            (&self.files, self.files.run(machine, &Peer::Eke { disk: *disk, arguments: Vec::new() }));
        let measured = guest::measure(&files.kit, &files.image, &run, self.environment.shutdown)?;
        self.measured.insert(key, measured.clone());
        Ok(Some(measured))
    }
}

/// The whole number of MiB.
fn mib(bytes: Bytes) -> u64 {
    bytes.0 >> 20
}

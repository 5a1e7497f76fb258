//! First stage: checks whether a program's files are resident in the page cache, with a sample and without reading the store.
//!
//! - [`prober`]: probes files within a time limit
//! - [`sample`]: selects the pages to probe (pure)

pub mod prober;
mod sample;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use self::prober::{Prober, Residency};
use self::sample::{requested, sample};
use crate::request::{Priority, ReadRequest};
use eke_prefetch_model::file_set::FileSet;
use eke_prefetch_model::program::ProgramId;

/// The most programs with a sample: about 4 KiB each.
const MOST: usize = 128;
/// A slower probe looks up paths on a disk: those files are cold.
const AT_MOST: Duration = Duration::from_millis(4);
/// Ahead, for all programs together. Those without an answer would take the places of others.
const AT_MOST_AHEAD: Duration = Duration::from_millis(100);

/// The sample of a program.
#[derive(Debug)]
struct Sample {
    files: Arc<[ReadRequest]>,
    /// Whether all files of the program were resident after its last start or read. Otherwise the sample does not represent the rest.
    whole: bool,
    used: u64,
}

/// The samples of recent programs, and their prober.
#[derive(Debug)]
pub(crate) struct Probe {
    prober: Prober,
    samples: BTreeMap<ProgramId, Sample>,
    uses: u64,
}

impl Probe {
    /// A probe without samples.
    pub fn new(prober: Prober) -> Self {
        Self { prober, samples: BTreeMap::new(), uses: 0 }
    }

    /// Takes new samples of these programs from the files chosen for them.
    pub fn remember<'a>(
        &mut self,
        programs: impl Iterator<Item = (ProgramId, &'a FileSet)>,
        chosen: &[ReadRequest],
    ) {
        let requested = requested(chosen);
        programs.for_each(|(program, set)| self.keep(program, sample(set, &requested).into()));
    }

    fn keep(&mut self, program: ProgramId, files: Arc<[ReadRequest]>) {
        self.samples.remove(&program);
        if files.is_empty() {
            return;
        }
        if self.samples.len() >= MOST {
            let oldest = self.samples.iter().min_by_key(|(_, sample)| sample.used).map(|(id, _)| *id);
            oldest.map(|oldest| self.samples.remove(&oldest));
        }
        self.uses += 1;
        self.samples.insert(program, Sample { files, whole: false, used: self.uses });
    }

    /// Records whether all files of the program are resident, as after a start or a complete read.
    pub fn set_whole(&mut self, program: ProgramId, whole: bool) {
        self.samples.entry(program).and_modify(|sample| sample.whole = whole);
    }

    /// Drops the sample of a program.
    pub fn forget(&mut self, program: ProgramId) {
        self.samples.remove(&program);
    }

    /// Probes a program's sample; `None` without a sample or without an answer in time.
    pub fn sample_of(&mut self, program: ProgramId) -> Option<Residency> {
        let files = Arc::clone(&self.samples.get(&program)?.files);
        self.prober.probe(vec![files], Priority::AtExec, AT_MOST).ok()?.pop()?
    }

    /// Probes a program's sample if it represents the whole program.
    pub fn program(&mut self, program: ProgramId) -> Option<Residency> {
        self.uses += 1;
        let sample = self.samples.get_mut(&program).filter(|sample| sample.whole)?;
        sample.used = self.uses;
        self.sample_of(program)
    }

    /// The programs whose files are still resident.
    pub fn resident(&mut self, programs: impl IntoIterator<Item = ProgramId>) -> Vec<ProgramId> {
        let whole = programs.into_iter().filter_map(|id| {
            let sample = self.samples.get(&id).filter(|sample| sample.whole)?;
            Some((id, Arc::clone(&sample.files)))
        });
        let (ids, files): (Vec<_>, Vec<_>) = whole.unzip();
        let found = self.prober.probe(files, Priority::Ahead, AT_MOST_AHEAD).unwrap_or_default();
        let resident = ids.into_iter().zip(found).filter(|(_, found)| *found == Some(Residency::Resident));
        resident.map(|(id, _)| id).collect()
    }
}

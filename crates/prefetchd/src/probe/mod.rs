//! First stage: are a program's files resident, that is in the page cache? A sample of them tells, without reading the store.
//!
//! - [`prober`]: probes files, with a time limit
//! - [`sample`]: which pages of a file set are probed (pure)

pub mod prober;
mod sample;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use self::prober::{Prober, Residency};
use self::sample::sample;
use crate::request::{Priority, ReadRequest};
use eke_prefetch_model::file_set::FileSet;
use eke_prefetch_model::program::ProgramId;

/// Programs whose samples are remembered: about 4 KiB each.
const MOST: usize = 128;
/// A probe that takes longer looks up paths on a disk: those are cold.
const AT_MOST: Duration = Duration::from_millis(4);

/// The sample of a program.
#[derive(Debug)]
struct Sample {
    files: Arc<[ReadRequest]>,
    /// All files of the program were resident after its last start or read. Otherwise the sample says nothing of the rest.
    whole: bool,
    used: u64,
}

/// The samples of recent programs, and what probes them.
#[derive(Debug)]
pub(crate) struct Probe {
    prober: Prober,
    samples: BTreeMap<ProgramId, Sample>,
    uses: u64,
}

impl Probe {
    /// Without samples.
    pub fn new(prober: Prober) -> Self {
        Self { prober, samples: BTreeMap::new(), uses: 0 }
    }

    /// Replaces the sample of a program by one of what was chosen of it.
    pub fn remember(&mut self, program: ProgramId, set: &FileSet, chosen: &[ReadRequest]) {
        let files: Arc<[ReadRequest]> = sample(set, chosen).into();
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

    /// All files of the program are resident now, as after a start or when all was read; or perhaps not.
    pub fn set_whole(&mut self, program: ProgramId, whole: bool) {
        self.samples.entry(program).and_modify(|sample| sample.whole = whole);
    }

    /// Drops the sample of a program.
    pub fn forget(&mut self, program: ProgramId) {
        self.samples.remove(&program);
    }

    /// The residency of a program's sample; `None` without a sample, or without an answer in time.
    pub fn sample_of(&mut self, program: ProgramId) -> Option<Residency> {
        let files = Arc::clone(&self.samples.get(&program)?.files);
        self.prober.probe(vec![files], Priority::AtExec, AT_MOST).ok()?.pop()?
    }

    /// The residency of a program, if its sample speaks for the rest.
    pub fn program(&mut self, program: ProgramId) -> Option<Residency> {
        self.uses += 1;
        let sample = self.samples.get_mut(&program).filter(|sample| sample.whole)?;
        sample.used = self.uses;
        self.sample_of(program)
    }

    /// Those of these programs whose files are still resident.
    pub fn resident(&mut self, programs: impl IntoIterator<Item = ProgramId>) -> Vec<ProgramId> {
        let whole = programs.into_iter().filter_map(|id| {
            let sample = self.samples.get(&id).filter(|sample| sample.whole)?;
            Some((id, Arc::clone(&sample.files)))
        });
        let (ids, files): (Vec<_>, Vec<_>) = whole.unzip();
        let found = self.prober.probe(files, Priority::Ahead, AT_MOST).unwrap_or_default();
        let resident = ids.into_iter().zip(found).filter(|(_, found)| *found == Some(Residency::Resident));
        resident.map(|(id, _)| id).collect()
    }
}

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
    /// Whose starts use these files.
    account: u32,
    /// Whether all files of the program were resident after its last start or read. Otherwise the sample does not represent the rest.
    whole: bool,
    used: u64,
}

impl Sample {
    fn is_whole_for(&self, account: u32) -> bool {
        self.whole && self.account == account
    }
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

    /// Takes new samples of these programs from the files chosen for this account's starts of them. Each program has one sample.
    pub fn remember<'a>(
        &mut self,
        programs: impl Iterator<Item = (ProgramId, &'a FileSet)>,
        account: u32,
        chosen: &[ReadRequest],
    ) {
        let requested = requested(chosen);
        programs.for_each(|(program, set)| self.keep(program, account, sample(set, &requested).into()));
    }

    fn keep(&mut self, program: ProgramId, account: u32, files: Arc<[ReadRequest]>) {
        self.samples.remove(&program);
        if files.is_empty() {
            return;
        }
        if self.samples.len() >= MOST {
            let oldest = self.samples.iter().min_by_key(|(_, sample)| sample.used).map(|(id, _)| *id);
            oldest.map(|oldest| self.samples.remove(&oldest));
        }
        self.uses += 1;
        self.samples.insert(program, Sample { files, account, whole: false, used: self.uses });
    }

    /// All files that this account's starts of the program use are resident, as after a start or a complete read.
    pub fn set_whole(&mut self, program: ProgramId, account: u32) {
        let sample = self.samples.get_mut(&program).filter(|sample| sample.account == account);
        sample.into_iter().for_each(|sample| sample.whole = true);
    }

    /// A read of the program's files was cut short.
    pub fn set_incomplete(&mut self, program: ProgramId) {
        self.samples.entry(program).and_modify(|sample| sample.whole = false);
    }

    /// Drops the sample of a program.
    pub fn forget(&mut self, program: ProgramId) {
        self.samples.remove(&program);
    }

    /// Probes the sample of an account's starts of a program; `None` without such a sample or without an answer in time.
    pub fn sample_of(&mut self, program: ProgramId, account: u32) -> Option<Residency> {
        let sample = self.samples.get(&program).filter(|sample| sample.account == account)?;
        let files = Arc::clone(&sample.files);
        self.prober.probe(vec![files], Priority::AtExec, AT_MOST).ok()?.pop()?
    }

    /// The same if the sample represents all files.
    pub fn program(&mut self, program: ProgramId, account: u32) -> Option<Residency> {
        self.uses += 1;
        let sample = self.samples.get_mut(&program).filter(|sample| sample.is_whole_for(account))?;
        sample.used = self.uses;
        self.sample_of(program, account)
    }

    /// The programs whose files, those of this account's starts, are still resident, as far as they may be opened.
    pub fn resident(
        &mut self,
        programs: impl IntoIterator<Item = ProgramId>,
        account: u32,
        may_open: &dyn Fn(&ReadRequest) -> bool,
    ) -> Vec<ProgramId> {
        let whole = programs.into_iter().filter_map(|id| {
            let sample = self.samples.get(&id).filter(|sample| sample.is_whole_for(account))?;
            let files: Arc<[ReadRequest]> =
                sample.files.iter().filter(|file| may_open(file)).cloned().collect();
            (!files.is_empty()).then_some((id, files))
        });
        let (ids, files): (Vec<_>, Vec<_>) = whole.unzip();
        let found = self.prober.probe(files, Priority::Ahead, AT_MOST_AHEAD).unwrap_or_default();
        let resident = ids.into_iter().zip(found).filter(|(_, found)| *found == Some(Residency::Resident));
        resident.map(|(id, _)| id).collect()
    }
}

#[cfg(test)]
mod tests {
    use eke_linux::Root;

    use super::*;
    use crate::schedule::{Limits, Scheduler};
    use eke_prefetch_model::file_set::{Kind, Stamp};
    use eke_prefetch_model::pages::Pages;

    #[test]
    fn a_sample_is_of_one_accounts_starts() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let scheduler = Scheduler::new(root.clone(), Limits::default());
        let mut probe = Probe::new(Prober::new(root, Arc::clone(scheduler.stuck())));
        let (id, anna, bob) = (ProgramId(7), 1000, 1001);
        let (pages, user, is_own) = (Pages::default(), anna, true);
        let file =
            ReadRequest { path: "/x".into(), kind: Kind::File, stamp: Stamp::default(), pages, user, is_own };
        probe.keep(id, anna, vec![file].into());
        let is_whole = |probe: &Probe| [anna, bob].map(|account| probe.samples[&id].is_whole_for(account));
        probe.set_whole(id, bob);
        assert_eq!(is_whole(&probe), [false, false], "his start shows nothing of her profile");
        probe.set_whole(id, anna);
        assert_eq!(is_whole(&probe), [true, false]);
        probe.set_incomplete(id);
        assert_eq!(is_whole(&probe), [false, false]);
    }

    #[test]
    fn a_program_none_of_whose_files_may_be_opened_is_not_taken_for_resident() {
        let dir = tempfile::tempdir().unwrap();
        eke_testkit::tree::put(dir.path(), "x", "");
        let (root, own) = (Root::at(dir.path()), rustix::fs::stat(dir.path().join("x")).unwrap());
        let scheduler = Scheduler::new(root.clone(), Limits::default());
        let mut probe = Probe::new(Prober::new(root, Arc::clone(scheduler.stuck())));
        let (id, pages, user) = (ProgramId(7), Pages::default(), own.st_uid);
        let (kind, stamp) = (Kind::File, crate::file::open::stamp(&own));
        let file = ReadRequest { path: "/x".into(), kind, stamp, pages, user, is_own: true };
        probe.keep(id, user, vec![file].into());
        probe.set_whole(id, user);
        assert_eq!(probe.resident([id], user, &|_| true), [id]);
        assert_eq!(probe.resident([id], user, &|_| false), []);
    }
}

//! Of programs whose files were all in memory once it is seen by a few of them whether that is so still, without a look into the store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::sample::sample;
use crate::fetch::glance::Seen;
use crate::fetch::{Fetcher, Haste, Want};
use eke_prefetch_model::file_set::FileSet;
use eke_prefetch_model::program::ProgramId;

/// Programs whose files are remembered: about 4 KiB each.
const MOST: usize = 128;
/// Whoever does not answer within this looks up paths on a disk: they are cold.
const AT_MOST: Duration = Duration::from_millis(4);

/// What is remembered of a program.
#[derive(Debug)]
struct Remembered {
    files: Arc<[Want]>,
    /// Were all files in memory when it was dealt with last? Else the few say nothing of the rest.
    whole: bool,
    used: u64,
}

/// Of all of them.
#[derive(Debug, Default)]
pub(super) struct Glances {
    programs: BTreeMap<ProgramId, Remembered>,
    uses: u64,
}

impl Glances {
    /// Remembers a few of what is wanted of a program, in the place of what was known of it.
    pub fn remember(&mut self, program: ProgramId, set: &FileSet, wants: &[Want]) {
        let files: Arc<[Want]> = sample(set, wants).into();
        self.programs.remove(&program);
        if files.is_empty() {
            return;
        }
        if self.programs.len() >= MOST {
            let oldest = self.programs.iter().min_by_key(|(_, known)| known.used).map(|(id, _)| *id);
            oldest.map(|oldest| self.programs.remove(&oldest));
        }
        self.uses += 1;
        self.programs.insert(program, Remembered { files, whole: false, used: self.uses });
    }

    /// Its files are all in memory now, as after a start or when all was read; or they are perhaps not.
    pub fn set_whole(&mut self, program: ProgramId, whole: bool) {
        self.programs.entry(program).and_modify(|known| known.whole = whole);
    }

    /// Nothing is known of it any more.
    pub fn forget(&mut self, program: ProgramId) {
        self.programs.remove(&program);
    }

    /// What is seen of a program's few files; `None` where nothing is remembered, or there is no answer in time.
    pub fn look(&mut self, fetcher: &Fetcher, program: ProgramId) -> Option<Seen> {
        let files = Arc::clone(&self.programs.get(&program)?.files);
        fetcher.glance(vec![files], Haste::AtExec, AT_MOST).ok()?.pop()?
    }

    /// What is seen of it, if the few speak for the rest.
    pub fn look_if_whole(&mut self, fetcher: &Fetcher, program: ProgramId) -> Option<Seen> {
        self.uses += 1;
        let known = self.programs.get_mut(&program).filter(|known| known.whole)?;
        known.used = self.uses;
        self.look(fetcher, program)
    }

    /// Those of these programs whose files are in memory still.
    pub fn there(
        &mut self,
        fetcher: &Fetcher,
        programs: impl IntoIterator<Item = ProgramId>,
    ) -> Vec<ProgramId> {
        let whole = programs.into_iter().filter_map(|id| {
            let known = self.programs.get(&id).filter(|known| known.whole)?;
            Some((id, Arc::clone(&known.files)))
        });
        let (ids, files): (Vec<_>, Vec<_>) = whole.unzip();
        let seen = fetcher.glance(files, Haste::Ahead, AT_MOST).unwrap_or_default();
        let there = ids.into_iter().zip(seen).filter(|(_, seen)| *seen == Some(Seen::There));
        there.map(|(id, _)| id).collect()
    }
}

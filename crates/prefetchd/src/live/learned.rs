//! What becomes of a recorded launch.

use super::notice::Notice;
use super::private::storable;
use super::process::Process;
use crate::trace::mounts::Mounts;
use eke_prefetch_model::learn::{Finished, Now};
use eke_prefetch_model::program::ProgramId;

/// The most programs whose start is not learned yet; most starts never are.
const MOST_READ_FOR: usize = 256;

impl Process<'_> {
    /// Adds to what eke read for the latest start of a program.
    pub(super) fn add_read_for(&mut self, program: ProgramId, bytes: u64) {
        if self.reads.for_start.len() >= MOST_READ_FOR {
            self.reads.for_start.clear();
        }
        *self.reads.for_start.entry(program).or_default() += bytes;
    }

    pub(super) fn learned(&mut self, finished: Finished, now: Now) {
        if !finished.should_store {
            return self.learned_names(finished, now);
        }
        let storable = storable(finished, &Mounts::read(self.root), &self.options.store);
        storable.into_iter().for_each(|finished| self.learned_names(finished, now));
    }

    /// Learns a launch whose names may be stored.
    fn learned_names(&mut self, mut finished: Finished, now: Now) {
        let id = finished.launch.program.id();
        self.effect.recorded(id, finished.launch.took, &mut self.library);
        self.state.effect = self.effect.so_far();
        let program = finished.launch.program.to_string();
        let is_new_wrapper = self.learn_wrappers(&finished, now);
        let read_bytes = self.reads.for_start.remove(&id).unwrap_or(0);
        if read_bytes > 0 {
            finished.launch.was_read_for();
        }
        if !finished.should_store {
            self.notices.push(Notice::NotKept { program });
            return;
        }
        let Some((files, bytes)) = self.library.add_launch(&finished, read_bytes, is_new_wrapper, now) else {
            return;
        };
        self.state.learned += 1;
        let launch = &finished.launch;
        self.supersede(&launch.program, now);
        let (took_s, cold_bytes) = (launch.took.as_secs_f64(), launch.cold_bytes);
        self.notices.push(Notice::Learned { program, took_s, files, bytes, cold_bytes });
    }
}

//! Which programs only start others, as the process learns and stores it.

use super::library::Library;
use super::notice::Notice;
use super::process::Process;
use eke_prefetch_model::learn::{Finished, Now, Wrappers};

const WRAPPERS: (&str, u32) = ("wrappers", 2);
/// Without users: they learn what starts others again.
const WITHOUT_USERS: u32 = 1;

impl Process<'_> {
    /// A store without this state is of an earlier eke, or empty.
    pub(super) fn load_wrappers(library: &mut Library, now: Now) -> Wrappers {
        if let Some(bytes) = library.state(WRAPPERS.0, WRAPPERS.1) {
            return Wrappers::from_state(&bytes);
        } else if library.state(WRAPPERS.0, WITHOUT_USERS).is_some() {
            return Wrappers::default();
        }
        let forgotten = library.outgrow_wrappers(now);
        if forgotten > 0 {
            let what = format!(
                "an earlier eke learned programs under the name of env ({forgotten}); eke forgets them and learns them under their own names"
            );
            library.notify(Notice::Trouble { what });
        }
        Wrappers::default()
    }

    /// Predictors forget what turns out to be a wrapper, for its user or for all. Returns whether the finished launch's program does for all.
    pub(super) fn learn_wrappers(&mut self, finished: &Finished, now: Now) -> bool {
        let (id, user) = (finished.launch.program.id(), finished.launch.uid);
        if !finished.should_store && self.library.state_of(id).is_none() {
            return false;
        }
        let library = &mut self.library;
        let new = self.wrappers.learn(finished, &mut |started| library.bytes(started, now));
        for wrapper in &new {
            if self.wrappers.is_wrapper_for_all(*wrapper) {
                self.predictor.forget(*wrapper);
                self.drop_reads(*wrapper);
            } else {
                self.predictor.forget_of(self.running.account(user), *wrapper);
            }
        }
        if !new.is_empty() {
            self.store_wrappers();
        }
        new.contains(&id) && self.wrappers.is_wrapper_for_all(id)
    }

    pub(super) fn store_wrappers(&mut self) {
        match self.wrappers.to_state() {
            Ok(bytes) => self.library.put_state(WRAPPERS.0, WRAPPERS.1, &bytes),
            Err(e) => {
                self.notices
                    .push(Notice::Trouble { what: format!("cannot store which programs start others: {e}") });
            }
        }
    }
}

//! Looks for programs that were removed since they were learned, and for arguments that an earlier eke took for scripts, as they may be private.
//!
//! After a boot each look-up is a read from the disk. So they begin when the boot and the log-in are over, a few at a time, in a thread of the idle class.

use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use eke_linux::Root;
use eke_linux::io_class::{self, Class};

use crate::trace::mounts::Mounts;
use eke_prefetch_model::program::{Program, ProgramId};

/// The time from the start of this process.
pub(super) const AFTER: Duration = Duration::from_secs(600);
/// The most programs in one round; each takes ten random reads at most.
const AT_ONCE: usize = 16;

/// The programs that are still to be looked up.
#[derive(Debug, Default)]
pub(super) struct Removed {
    /// `None` before it begins.
    pub(super) left: Option<Vec<Program>>,
    pub(super) under_way: Option<Receiver<Vec<ProgramId>>>,
}

impl Removed {
    /// The programs that the last look-ups missed; `None` while they go on.
    pub fn take_missed(&mut self) -> Option<Vec<ProgramId>> {
        let missed = match self.under_way.as_ref().map(Receiver::try_recv) {
            Some(Err(TryRecvError::Empty)) => return None,
            Some(Ok(missed)) => missed,
            Some(Err(TryRecvError::Disconnected)) | None => Vec::new(),
        };
        self.under_way = None;
        Some(missed)
    }

    /// Looks up the next ones of these, of those that `is_ready`. Without a thread the next start looks them up.
    pub fn look_up(&mut self, root: &Root, programs: Vec<Program>, is_ready: impl Fn(&Program) -> bool) {
        let (mut ready, mut rest): (Vec<Program>, Vec<Program>) = programs.into_iter().partition(is_ready);
        rest.extend(ready.split_off(ready.len().min(AT_ONCE)));
        self.left = Some(rest);
        if ready.is_empty() {
            return;
        }
        let (root, (answer, answers)) = (root.clone(), channel());
        let look_up = move || {
            // Without permission for the class, the process's class applies.
            let _ = io_class::set(Class::Idle);
            let mounts = Mounts::read(&root);
            let missed = ready.iter().filter(|program| mounts.lacks(program)).map(Program::id);
            // Nobody receives it if the process is ending.
            let _ = answer.send(missed.collect());
        };
        let thread = std::thread::Builder::new().name("removed".to_owned());
        self.under_way = thread.spawn(look_up).ok().map(|_| answers);
    }
}

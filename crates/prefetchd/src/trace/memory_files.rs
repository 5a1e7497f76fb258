//! The files of `/proc` that show a process's memory (`cmdline`, `environ`, `maps`, `pagemap`), read within bounds.
//!
//! Their readers wait for the lock of that memory (`mmap_lock`), and a user can have it held for ever: a thread that reads a page of a FUSE file by
//! `/proc/self/mem` holds it until the server answers, and once another thread maps something nobody else gets it (`access_remote_vm` in mm/memory.c:
//! it faults without leave to drop the lock). So a thread reads, which is waited for as long as a probe of files ([`crate::probe::prober`]) is: not for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use eke_linux::Root;
use eke_prefetch_model::learn::{GivenPaths, Owners};

use super::process;
use crate::owners::owners;
use crate::read::StuckWorkers;

/// Others hold the lock for microseconds, but a page of arguments may have to come from swap.
const AT_MOST: Duration = Duration::from_secs(1);
const STACK_BYTES: usize = 128 << 10;
/// The user of a process that has ended.
const NOBODY: u32 = u32::MAX;

/// Reads these files.
#[derive(Debug, Clone)]
pub struct MemoryFiles {
    root: Root,
    owners: Arc<Owners>,
    /// The threads that have not returned, by the accounts of their processes.
    stuck: Arc<StuckWorkers>,
}

impl MemoryFiles {
    /// Of the processes of this machine.
    pub fn new(root: &Root) -> Self {
        Self { root: root.clone(), owners: Arc::new(owners(root)), stuck: Arc::default() }
    }

    /// The directory where paths begin.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// The begin of a process's arguments, each followed by a zero byte; empty if they cannot be read in time.
    pub fn args(&self, pid: u32) -> Vec<u8> {
        self.read(pid, move |root| process::args(root, pid)).unwrap_or_default()
    }

    /// The paths that a process was given.
    pub fn given(&self, pid: u32) -> GivenPaths {
        self.read(pid, move |root| process::given(root, pid)).unwrap_or_default()
    }

    /// What `read` reads of a process's files. `None` if it takes longer than [`AT_MOST`]: then nothing of the account's processes is read until it has
    /// returned, and for ten minutes more, so that nobody can make the daemon wait again and again.
    pub(super) fn read<T: Send + 'static>(
        &self,
        pid: u32,
        read: impl FnOnce(&Root) -> T + Send + 'static,
    ) -> Option<T> {
        let user = process::parent_and_user(&self.root, pid).map_or(NOBODY, |(_, user)| user);
        let account = u64::from(self.owners.account(user));
        if self.stuck.is_full() || self.stuck.barred(Instant::now()).contains(&account) {
            return None;
        }
        let (sender, answer) = channel();
        let (root, stuck, is_late) =
            (self.root.clone(), Arc::clone(&self.stuck), Arc::new(AtomicBool::new(false)));
        let returned = Arc::clone(&is_late);
        let thread = std::thread::Builder::new().name("memory".to_owned()).stack_size(STACK_BYTES);
        let reads = move || {
            // Nobody receives it if it is late.
            let _ = sender.send(read(&root));
            if returned.swap(true, Ordering::Relaxed) {
                stuck.worker_returned(account, Instant::now());
            }
        };
        thread.spawn(reads).ok()?;
        if let Ok(found) = answer.recv_timeout(AT_MOST) {
            return Some(found);
        }
        self.stuck.add(account);
        // It may have returned just now.
        if is_late.swap(true, Ordering::Relaxed) {
            self.stuck.worker_returned(account, Instant::now());
        }
        None
    }
}

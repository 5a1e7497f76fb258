//! Files that are open, for all workers of a device; the oldest is closed for a new one.

use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::job::DeviceQueue;
use crate::file::open::{Opened, Refusal, open, top};

/// Half of what a process may have unless it asks for more.
const MOST_OPEN: usize = 512;

/// By the numbers of their requests.
#[derive(Debug)]
pub(crate) struct Files {
    root: PathBuf,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    top: Option<Arc<OwnedFd>>,
    files: HashMap<usize, Arc<Opened>>,
    order: VecDeque<usize>,
}

impl Files {
    /// None yet; `root` is the directory that paths begin at.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root, open: Mutex::default() }
    }

    /// Opens a request, unless somebody did. Nobody else waits meanwhile: it may hang.
    ///
    /// # Errors
    /// As [`open`].
    pub(crate) fn get(&self, device: &DeviceQueue, request: usize) -> Result<Arc<Opened>, Refusal> {
        if let Some(opened) = self.open().files.get(&request) {
            return Ok(Arc::clone(opened));
        }
        let top = self.top().map_err(Refusal::now)?;
        let opened = Arc::new(open(&top, &device.requests[request].request)?);
        self.open().keep(request, &opened);
        Ok(opened)
    }

    /// Closes all, as far as nobody is at them.
    pub(crate) fn close(&self) {
        *self.open() = Open::default();
    }

    fn top(&self) -> Result<Arc<OwnedFd>, String> {
        let mut open = self.open();
        if open.top.is_none() {
            open.top = Some(Arc::new(top(&self.root)?));
        }
        open.top.clone().ok_or_else(|| "it is not open".to_owned())
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn keep(&mut self, request: usize, opened: &Arc<Opened>) {
        if self.files.insert(request, Arc::clone(opened)).is_some() {
            return;
        }
        self.order.push_back(request);
        if self.order.len() > MOST_OPEN {
            let oldest = self.order.pop_front();
            oldest.map(|oldest| self.files.remove(&oldest));
        }
    }
}

//! The open files of a device, shared by its workers; the oldest is closed for a new one.

use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::job::DeviceQueue;
use crate::file::open::{OpenedFile, Refusal, open, top};

/// Open files by their requests' indexes.
#[derive(Debug)]
pub(crate) struct Files {
    root: PathBuf,
    most: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    top: Option<Arc<OwnedFd>>,
    files: HashMap<usize, Arc<OpenedFile>>,
    order: VecDeque<usize>,
}

impl Files {
    /// No files yet, and at most `most` later; `root` is the directory where paths begin.
    pub(crate) fn new(root: PathBuf, most: usize) -> Self {
        Self { root, most, open: Mutex::default() }
    }

    /// Opens a request's file unless it is open. Other workers do not wait meanwhile, because open(2) may hang.
    ///
    /// # Errors
    /// See [`open`].
    pub(crate) fn get(&self, device: &DeviceQueue, request: usize) -> Result<Arc<OpenedFile>, Refusal> {
        if let Some(opened) = self.open().files.get(&request) {
            return Ok(Arc::clone(opened));
        }
        let top = self.top().map_err(Refusal::now)?;
        let opened = Arc::new(open(&top, &device.requests[request].request)?);
        self.open().keep(request, &opened, self.most);
        Ok(opened)
    }

    /// Closes all files, except those in use.
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
    fn keep(&mut self, request: usize, opened: &Arc<OpenedFile>, most: usize) {
        if self.files.insert(request, Arc::clone(opened)).is_some() {
            return;
        }
        self.order.push_back(request);
        if self.order.len() > most {
            let oldest = self.order.pop_front();
            oldest.map(|oldest| self.files.remove(&oldest));
        }
    }
}

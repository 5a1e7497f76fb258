//! Selects the best tracing method.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use eke_linux::Root;

use super::memory_files::MemoryFiles;
use super::method::{OthersReads, Trace, TraceError};
use super::plain::Plain;
use super::self_test;
use eke_prefetch_model::learn::{GivenPaths, LaunchId, TraceEvent};
use eke_prefetch_model::source::{Source, TraceMethod};

/// A tracer. Dropping it detaches everything from the kernel.
#[derive(Debug)]
pub struct Tracer {
    files: MemoryFiles,
    source: Source,
    trace: Box<dyn Trace>,
}

impl Tracer {
    /// The best tracer on this machine. Polling `/proc` always works.
    pub fn start(root: &Root) -> Self {
        let mut refused = Vec::new();
        for method in [TraceMethod::Bpf, TraceMethod::Connector, TraceMethod::ExecOpens] {
            match Self::start_by(root, method).and_then(|tracer| tracer.that_reports(root)) {
                Ok(tracer) => return tracer.with_reasons(refused),
                Err(why) => refused.push((method, why.to_string())),
            }
        }
        Self::polling(root).with_reasons(refused)
    }

    /// Starts a tracer of this method.
    ///
    /// # Errors
    /// Why it is not available.
    pub fn start_by(root: &Root, method: TraceMethod) -> Result<Self, TraceError> {
        let files = MemoryFiles::new(root);
        let plain = match method {
            TraceMethod::Bpf => return bpf(files),
            TraceMethod::Connector => Plain::by_events(&files)?,
            TraceMethod::ExecOpens => Plain::by_opens(&files)?,
            TraceMethod::Scan => return Ok(Self::polling(root)),
        };
        Ok(Self::of(files, method, Box::new(plain), plain_limits(method)))
    }

    fn polling(root: &Root) -> Self {
        let (files, method) = (MemoryFiles::new(root), TraceMethod::Scan);
        let plain = Plain::by_polling(&files);
        Self::of(files, method, Box::new(plain), plain_limits(method))
    }

    pub(super) fn of(
        files: MemoryFiles,
        method: TraceMethod,
        trace: Box<dyn Trace>,
        limits: Vec<String>,
    ) -> Self {
        let source = Source { method, why_not_better: Vec::new(), limits };
        Self { files, source, trace }
    }

    /// Tests that it reports a program that this process starts: in a container the kernel may report nothing, or other process ids.
    fn that_reports(mut self, root: &Root) -> Result<Self, TraceError> {
        if root.is_host() {
            self_test::check(self.trace.as_mut(), &mut self_test::program(), self_test::AT_MOST)?;
        }
        Ok(self)
    }

    fn with_reasons(mut self, why_not_better: Vec<(TraceMethod, String)>) -> Self {
        self.source.why_not_better = why_not_better;
        self
    }

    /// The method, and why no better one is used.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// See [`Trace::wait`].
    pub fn wait(&mut self, at_most: Duration) {
        self.trace.wait(at_most);
    }

    /// See [`Trace::read`].
    pub fn read(&mut self, mut each: impl FnMut(TraceEvent)) {
        self.trace.read(&mut each);
    }

    /// See [`Trace::learn`].
    ///
    /// # Errors
    /// See [`Trace::learn`].
    pub fn learn(&mut self, launch: LaunchId, pid: u32) -> Result<Vec<u32>, TraceError> {
        self.trace.learn(launch, pid)
    }

    /// The paths that a process was given. Of one that has ended there are none.
    pub fn given(&self, pid: u32) -> GivenPaths {
        self.files.given(pid)
    }

    /// See [`Trace::assign`].
    pub fn assign(&mut self, pid: u32, launch: Option<LaunchId>) {
        self.trace.assign(pid, launch);
    }

    /// See [`Trace::has_lost_children`].
    pub fn has_lost_children(&mut self) -> bool {
        self.trace.has_lost_children()
    }

    /// See [`Trace::sees_uses`].
    pub fn sees_uses(&self) -> bool {
        self.trace.sees_uses()
    }

    /// See [`Trace::others_reads`].
    pub fn others_reads(&self) -> Option<Arc<dyn OthersReads>> {
        self.trace.others_reads()
    }

    /// See [`Trace::forget`].
    pub fn forget(&mut self, launch: LaunchId) {
        self.trace.forget(launch);
    }

    /// See [`Trace::fd`].
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.trace.fd()
    }
}

/// What BPF cannot trace here, if it is available.
///
/// # Errors
/// Why it is not available: not built in, no BTF, no permission, or the verifier's answer.
pub fn available(root: &Root) -> Result<Vec<String>, TraceError> {
    bpf(MemoryFiles::new(root)).map(|tracer| tracer.source.limits)
}

#[cfg(feature = "bpf")]
fn bpf(files: MemoryFiles) -> Result<Tracer, TraceError> {
    let (trace, limits) = super::bpf::Bpf::start(&files)?;
    Ok(Tracer::of(files, TraceMethod::Bpf, Box::new(trace), limits))
}

#[cfg(not(feature = "bpf"))]
fn bpf(_files: MemoryFiles) -> Result<Tracer, TraceError> {
    let why = "this program was built without it, as the static package and that for i386 are; the other packages have it (from the tree: `make setup`, which installs clang and the headers of libelf and zlib, and build again)";
    Err(TraceError::new("tracing by BPF", why))
}

fn plain_limits(method: TraceMethod) -> Vec<String> {
    let pages = "only pages that are mapped at a poll are seen, not read(2), directories and metadata";
    let apart = "programs whose files the host does not have at the same paths (containers) have no names";
    let short = "programs that end within seconds are not seen";
    let very_short = "programs that end within milliseconds may not be seen";
    let all: &[&str] = match method {
        TraceMethod::Scan => &[pages, apart, short],
        TraceMethod::ExecOpens => &[pages, apart, very_short],
        TraceMethod::Bpf | TraceMethod::Connector => &[pages, apart],
    };
    all.iter().map(|text| (*text).to_owned()).collect()
}

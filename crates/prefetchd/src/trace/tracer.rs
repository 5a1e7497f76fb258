//! What all ways of tracing have in common, and which is the best here.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use eke_linux::Root;

use super::hears;
use super::plain::Plain;
use super::way::{Refused, Trace};
use eke_prefetch_model::learn::{LaunchId, Seen};
use eke_prefetch_model::source::{Source, Way};

/// A tracer. What it attached to the kernel goes when it is dropped.
#[derive(Debug)]
pub struct Tracer {
    source: Source,
    way: Box<dyn Trace>,
}

impl Tracer {
    /// The best that this machine allows. Looking at `/proc` always goes.
    pub fn start(root: &Root) -> Self {
        let mut refused = Vec::new();
        for way in [Way::Bpf, Way::Connector] {
            match Self::start_by(root, way).and_then(|tracer| tracer.that_hears(root)) {
                Ok(tracer) => return tracer.with_reasons(refused),
                Err(why) => refused.push((way, why.to_string())),
            }
        }
        Self::of(Way::Scan, Box::new(Plain::by_looks(root)), plain_blind(Way::Scan)).with_reasons(refused)
    }

    /// This way and no other.
    ///
    /// # Errors
    /// Why it cannot be had.
    pub fn start_by(root: &Root, way: Way) -> Result<Self, Refused> {
        match way {
            Way::Bpf => bpf(root),
            Way::Connector => Ok(Self::of(way, Box::new(Plain::by_events(root)?), plain_blind(way))),
            Way::Scan => Ok(Self::of(way, Box::new(Plain::by_looks(root)), plain_blind(way))),
        }
    }

    fn of(way: Way, trace: Box<dyn Trace>, blind: Vec<String>) -> Self {
        Self { source: Source { way, why_not_better: Vec::new(), blind }, way: trace }
    }

    /// Only if it reports a program that this process starts: in a container the kernel may report nothing, or other process numbers.
    fn that_hears(mut self, root: &Root) -> Result<Self, Refused> {
        if root.is_host() {
            hears::check(self.way.as_mut(), &mut hears::program(), hears::AT_MOST)?;
        }
        Ok(self)
    }

    fn with_reasons(mut self, why_not_better: Vec<(Way, String)>) -> Self {
        self.source.why_not_better = why_not_better;
        self
    }

    /// Which way it is, and why no better one.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// See [`Trace::wait`].
    pub fn wait(&mut self, at_most: Duration) {
        self.way.wait(at_most);
    }

    /// See [`Trace::read`].
    pub fn read(&mut self, mut each: impl FnMut(Seen)) {
        self.way.read(&mut each);
    }

    /// See [`Trace::learn`].
    ///
    /// # Errors
    /// See [`Trace::learn`].
    pub fn learn(&mut self, launch: LaunchId, pid: u32) -> Result<(), Refused> {
        self.way.learn(launch, pid)
    }

    /// See [`Trace::forget`].
    pub fn forget(&mut self, launch: LaunchId) {
        self.way.forget(launch);
    }

    /// See [`Trace::fd`].
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.way.fd()
    }
}

/// What BPF would not see here, if it can be had.
///
/// # Errors
/// Why it cannot be had: not built in, no BTF, not permitted, or what the kernel said to the programs.
pub fn available(root: &Root) -> Result<Vec<String>, Refused> {
    bpf(root).map(|tracer| tracer.source.blind)
}

#[cfg(feature = "bpf")]
fn bpf(root: &Root) -> Result<Tracer, Refused> {
    let (trace, blind) = super::bpf::Bpf::start(root)?;
    Ok(Tracer::of(Way::Bpf, Box::new(trace), blind))
}

#[cfg(not(feature = "bpf"))]
fn bpf(_root: &Root) -> Result<Tracer, Refused> {
    let why = "eke was built without it; it needs clang, libelf's and zlib's headers (`make setup` installs them), then build again";
    Err(Refused::new("tracing by BPF", why))
}

fn plain_blind(way: Way) -> Vec<String> {
    let pages = "only pages that are mapped when it looks are seen, not read(2), directories and metadata";
    let apart = "programs whose files the host does not have at the same paths (containers) have no names";
    let short = "programs that end within seconds are not seen";
    let all: &[&str] = if way == Way::Scan { &[pages, apart, short] } else { &[pages, apart] };
    all.iter().map(|text| (*text).to_owned()).collect()
}

//! Prefetchers.
//!
//! - [`preload`]: preload 0.6.4, the daemon of Debian's package; [`conf`]: its configuration and state as text (pure)
//! - [`eke`]: eke's, the program `eke-prefetch`

pub mod conf;
pub mod eke;
pub mod preload;

use super::error::Result;
use super::fixture::DiskFixture;
use super::programs::Program;

/// A prefetcher. Drop ends its processes. Nothing of it runs between [`Prefetcher::rest`] and the next call.
pub trait Prefetcher {
    /// Learns these programs together, by launches on this disk, in this order: one program, or those of a row.
    ///
    /// # Errors
    /// It did not learn them, or a launch failed.
    fn learn(&mut self, fixture: &DiskFixture<'_>, programs: &[&'static Program]) -> Result<()>;

    /// Reads ahead what it predicts for these programs, as it does by itself, and waits for the end of that. It keeps running.
    ///
    /// # Errors
    /// It is missing, or ended.
    fn ahead(&mut self, fixture: &DiskFixture<'_>, programs: &[&'static Program]) -> Result<()>;

    /// Starts it so that it reads at exec of this program and nothing ahead; without effect if it cannot. The disk is made cold after
    /// this call: it may launch the program first, to know what it knows in the long run.
    ///
    /// # Errors
    /// It is missing, or ended.
    fn at_exec(&mut self, fixture: &DiskFixture<'_>, program: &'static Program) -> Result<()>;

    /// Starts it with its defaults, having learned these programs. The disk is made cold after this call.
    ///
    /// # Errors
    /// It is missing, or ended.
    fn watch(&mut self, fixture: &DiskFixture<'_>, programs: &[&'static Program]) -> Result<()>;

    /// Ends its processes. It keeps what it learned.
    ///
    /// # Errors
    /// One had to be killed.
    fn rest(&mut self) -> Result<()>;

    /// Forgets everything that it learned.
    ///
    /// # Errors
    /// Its files cannot be removed.
    fn forget(&mut self) -> Result<()>;
}

/// `xterm+gedit`
pub(super) fn key(programs: &[&'static Program]) -> String {
    programs.iter().map(|p| p.name).collect::<Vec<_>>().join("+")
}

//! Who reads ahead what programs will need.
//!
//! - [`preload`]: preload 0.6.4, the daemon of Debian's package; [`conf`]: its configuration and state as text (pure)
//! - [`eke`]: eke's, the program `eke-prefetch`

pub mod conf;
pub mod eke;
pub mod preload;

use super::error::Result;
use super::fixture::Fixture;
use super::programs::Program;

/// A prefetcher. Whatever processes it has end when it is dropped; nothing of it runs between [`Prefetcher::rest`] and the next call.
pub trait Prefetcher {
    /// Learns these programs together, by launches on this disk, in this order: one program, or those of a row.
    ///
    /// # Errors
    /// It did not learn them, or a launch came to nothing.
    fn learn(&mut self, fixture: &Fixture<'_>, programs: &[&'static Program]) -> Result<()>;

    /// Brings what it foresees where one of these programs may be started next, as it would by itself, and waits until that is done. It
    /// goes on running.
    ///
    /// # Errors
    /// It is not there, or ended.
    fn ahead(&mut self, fixture: &Fixture<'_>, programs: &[&'static Program]) -> Result<()>;

    /// From now on it does what it can do at the moment of exec of this program, and nothing ahead; where it can do nothing then,
    /// nothing. The disk is made cold after that, not before: it may launch the program, to know what it would in the long run.
    ///
    /// # Errors
    /// It is not there, or ended.
    fn at_exec(&mut self, fixture: &Fixture<'_>, program: &'static Program) -> Result<()>;

    /// From now on it does by itself whatever it does, having learned these programs. The disk is made cold after that, as above.
    ///
    /// # Errors
    /// It is not there, or ended.
    fn watch(&mut self, fixture: &Fixture<'_>, programs: &[&'static Program]) -> Result<()>;

    /// Ends its processes; what it learned stays.
    ///
    /// # Errors
    /// One had to be killed.
    fn rest(&mut self) -> Result<()>;

    /// Forgets all that it learned.
    ///
    /// # Errors
    /// The system's answer.
    fn forget(&mut self) -> Result<()>;
}

/// `xterm+gedit`
pub(super) fn key(programs: &[&'static Program]) -> String {
    programs.iter().map(|p| p.name).collect::<Vec<_>>().join("+")
}

//! What is the matter with a disk, and who causes it.
//!
//! - [`decide`]: the verdict, from figures; pure
//! - [`threads`], [`programs`], [`pressure`]: text of `/proc` to figures; pure
//! - [`causes`]: reads them

pub mod causes;
pub mod decide;
pub mod pressure;
pub mod programs;
pub mod threads;

pub use causes::{Causes, Since};
pub use decide::{Facts, Kind, Verdict, decide};

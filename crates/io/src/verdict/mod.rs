//! What is the matter with a disk, and who causes it.
//!
//! - [`decide`]: the verdict, from figures; pure
//! - [`threads`]: what the threads of the kernel do for writers; pure
//! - [`causes`]: reads them

pub mod causes;
pub mod decide;
pub mod threads;

pub use causes::{Causes, Since};
pub use decide::{Facts, Kind, Verdict, decide};

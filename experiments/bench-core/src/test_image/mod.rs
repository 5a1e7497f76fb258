//! A *stage*: programs and documents as a tree into which a session is put, on a disk as slow as one says.
//!
//! ```text
//! Parts --Tree::of--> Tree --ensure--> image (cached) --TestImage::prepare--> mounted tree, for chroot(2)
//! ```
//!
//! - [`Parts`]: what is wanted, as lists
//! - [`Tree`]: which files that comes to: loaders, libraries, interpreters, and links with what they point to
//! - [`ensure`]: an ext4 image of them; the small machine takes the same one as a disk
//! - [`TestImage`]: the image on a slow disk, mounted, and cold when asked

mod copy;
mod error;
mod image;
mod libraries;
mod mount;
mod parts;
mod scratch;
pub mod start;
mod tree;

pub use copy::to as copy_to;
pub use error::{Error, Result};
pub use image::{cached, run};
pub use image::{default_cache, ensure};
pub use mount::{TestImage, TestImageSpec};
pub use mount::{attach, profile, source};
pub use parts::{DOCUMENTS, Parts, Placed};
pub use scratch::sweep;
pub use scratch::{Scratch, mount_point, sweep_dir};
pub use tree::Tree;

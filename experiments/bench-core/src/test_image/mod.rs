//! A *test image*: programs and documents as a tree on a slow disk. A session enters it by chroot(2).
//!
//! ```text
//! Parts --Tree::of--> Tree --ensure--> image (cached) --TestImage::prepare--> mounted tree
//! ```
//!
//! - [`Parts`]: programs and files, as lists
//! - [`Tree`]: all files that they need: loaders, libraries, interpreters, and links with their targets
//! - [`ensure`]: an ext4 image of the tree, cached by content; the small machine uses the same image as a disk
//! - [`TestImage`]: the image on a slow disk, mounted; [`TestImage::cold`] mounts it anew, so that nothing of it is in memory

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

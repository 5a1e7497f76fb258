//! What has to hold from the next boot on: zswap's settings on the kernel command line, and eke itself.
//!
//! # Layout
//! - [`words`], [`shell`]: a kernel command line, and a variable in a file that a shell reads, as text
//! - [`grub`], [`entries`], [`extlinux`], [`initramfs`]: the files of each loader and generator, as text
//! - [`mod@detect`]: which of them this root has
//! - [`plan`]: from there to changes of files and the commands that make them count
//! - [`command`]: commands that make changed files count
//! - [`act`]: doing that, and undoing it, through [`crate::files`]
//! - [`enable`]: eke at every boot
//!
//! Invariants: nothing but [`act`] changes anything; a text that cannot be made out is left alone, and the words to
//! add by hand are said; commands run on the running machine only and are listed for any other root.
//!
//! Where Debian's `/etc/default/grub.d` is read, the words go into a drop-in of our own: `/etc/default/grub` belongs
//! to the user and to ucf, which asks about every change at the next upgrade. Words of the user's that set the same
//! parameters are replaced where they stand.

pub mod act;
pub mod command;
pub mod detect;
pub mod enable;
pub mod entries;
pub mod extlinux;
pub mod grub;
pub mod initramfs;
pub mod plan;
pub mod shell;
pub mod words;

pub use act::{Undone, Written, undo, write};
pub use command::Command;
pub use detect::{Detected, Initramfs, Loader, detect};
pub use plan::{BootPlan, ZswapBoot, changes};

/// The owner of these changes in the journal of files.
pub const OWNER: &str = "boot-config";

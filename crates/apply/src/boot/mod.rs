//! Settings for the next boots: zswap's on the kernel command line, and eke itself.
//!
//! # Layout
//! - [`words`], [`shell`]: a kernel command line, and a variable in a file that a shell reads, as text
//! - [`grub`], [`entries`], [`extlinux`], [`initramfs`]: the files of each loader and generator, as text
//! - [`mod@detect`]: which of them this root has
//! - [`plan`]: the file changes, and the commands that put them into effect
//! - [`command`]: those commands
//! - `new_entries`: what a kernel upgrade wrote since, with eke's words
//! - `unmounted`: refuses to undo changes on a file system that is not mounted
//! - [`act`]: applies and undoes a plan, through [`crate::files`]
//! - [`enable`]: starts eke at every boot
//! - [`cache_mount`]: mounts compressed page caches at every boot
//! - [`ltsp`]: puts eke into the boot of an LTSP server's clients
//!
//! Invariants: only [`act`] changes anything; a text that eke cannot parse is left alone, and the user gets the words
//! to add by hand; commands run only on the running machine and are listed for any other root.
//!
//! If Debian's `/etc/default/grub.d` is read, the words go into a drop-in of our own: `/etc/default/grub` belongs to
//! the user and to ucf, which asks about every change at the next upgrade. Words of the user's for the same parameters
//! are replaced in place.

pub mod act;
pub mod cache_mount;
pub mod command;
pub mod detect;
mod due;
pub mod enable;
pub mod entries;
pub mod extlinux;
pub mod grub;
pub mod initramfs;
pub mod ltsp;
mod new_entries;
pub mod plan;
pub mod shell;
mod unmounted;
pub mod words;

pub use act::{Undone, Written, undo, write};
pub use command::Command;
pub use detect::{Detected, Initramfs, Loader, detect};
pub use plan::{BootPlan, ZswapBoot, changes};

/// The owner of these changes in the journal of files.
pub const OWNER: &str = "boot-config";

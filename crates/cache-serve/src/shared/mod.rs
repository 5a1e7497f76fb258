//! The tier that a farm shares, for one mount. `eke-cache-shared` has its blocks, `eke-cache-engine` the network; this connects both.
//!
//! # Layout
//! - [`open`]: the settings: checked by the supervisor before the mount; [`secrets`]: their files
//! - [`process`]: the engine's process: started, and started again when it dies
//! - [`link`]: a worker's side
//! - [`error`]: messages for the user
//!
//! # Lives
//! - The *supervisor* holds both ends of two pairs of sockets, and hands one end to each worker, the other to each process of the engine. So
//!   either may die and be replaced without the other one.
//! - The *engine's process* executes another program, before the mount covers anything. It has no rights and nothing of the mount.
//! - The key of sealed blocks stays in supervisor and workers.

pub mod error;
pub mod link;
pub mod open;
pub mod process;
pub mod secrets;

pub use open::SharedPlace;

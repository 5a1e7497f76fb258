//! The *small machine*: a real Linux machine with little memory, in QEMU's software emulation.
//!
//! It has Debian's kernel, busybox, our static binaries and the requested kernel modules. It boots in about three
//! seconds, runs one script, and switches itself off. It has features that the tests' host may lack: zstd and lz4hc for
//! zram, zram writeback, zswap as a share of a *small* RAM, MGLRU, both cgroup versions, disks with a limited rate.
//!
//! ```no_run
//! use eke_vm::{Kit, Recipe, default_cache, run};
//!
//! let kit = Kit::fetch(&default_cache())?;
//! let outcome = run(&kit, &Recipe::new("modprobe zram; cat /sys/block/zram0/comp_algorithm"))?;
//! assert_eq!(outcome.status, 0, "{}", outcome.console);
//! println!("{} in {:.1} s", outcome.output, outcome.seconds);
//! # Ok::<(), eke_vm::Error>(())
//! ```
//!
//! Emulation makes CPU work 10 to 18 times slower, but not the (emulated) disks: compare counts and states there, and
//! times only between variants in one machine.

mod apt;
mod binaries;
mod disk;
mod error;
mod fetch;
mod kit;
mod modules;
mod newc;
mod outcome;
mod parts;
mod policy;
mod qemu;
mod recipe;
mod running;
mod scratch;
mod tree;
mod userland;
mod vmlinux;

pub use binaries::{build_static, check_static};
pub use error::{Error, Result, Trace};
pub use fetch::{fetch_package, find_package};
pub use kit::{Kit, default_cache};
pub use outcome::Outcome;
pub use parts::{Missing, Part};
pub use policy::{Policy, kit_for_tests, kit_for_tests_of};
pub use recipe::{Card, Cgroup, DEFAULT_MODULES, Disk, Ending, Format, GuestFile, Recipe, System, Userland};
pub use running::{mortal, run, run_until};
pub use scratch::{program, run_to_end, write_scratch};
pub use userland::{make_root, make_root_from};

//! The fleet: emulated Debian machines, each with its real init, that install, use, upgrade and remove the package.
//!
//! `machines.toml` describes the machines and `steps.toml` what is done on each; both are data. [`image`] makes a machine's disk,
//! [`qemu`] its command line, [`shell`] talks to the shell in it, [`drive`] runs the steps, [`results`] keeps what they gave, and [`table`]
//! writes it as a page.

pub mod console;
pub mod drive;
pub mod image;
pub mod machines;
pub mod package;
pub mod qemu;
pub mod results;
pub mod shell;
pub mod steps;
pub mod table;

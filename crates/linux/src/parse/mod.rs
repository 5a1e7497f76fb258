//! Text to data, one file for each kernel file. Parsers take text, never paths; what is not understood is left out
//! or zero, as in a kernel that lacks it, and nothing here can panic on any input.

pub mod disk_stat;
pub mod escape;
pub mod file_system;
pub mod groups;
pub mod keyed;
pub mod maps;
pub mod meminfo;
pub mod mountinfo;
pub mod pressure;
pub mod process_io;
pub mod process_stat;
pub mod process_status;
pub mod stat;
pub mod swaps;
pub mod vmstat;
pub mod zram;

//! Parsers, one file for each kernel file. They take text, never paths. What they do not understand is left out or
//! zero, as if the kernel lacked it. No input makes them panic.

pub mod arcstats;
pub mod cpu_list;
pub mod disk_stat;
pub mod escape;
pub mod file_system;
pub mod groups;
pub mod keyed;
pub mod lru_gen;
pub mod maps;
pub mod meminfo;
pub mod mountinfo;
pub mod pressure;
pub mod process_io;
pub mod process_stat;
pub mod process_statm;
pub mod process_status;
pub mod release;
pub mod stat;
pub mod swaps;
pub mod vmstat;
pub mod zram;

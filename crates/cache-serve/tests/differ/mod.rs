//! The same random operations on a mount and on a plain directory, by several users, some past the mount; after each the
//! same errors, bytes, modes, owners and listings.
//!
//! - [`op`]: an operation as data; [`words`]: how it is printed
//! - [`choose`]: what proptest makes of them
//! - [`user`]: users, each a thread with its own credentials
//! - [`perform`]: the system calls
//! - [`allowed`]: how a mount differs on purpose
//! - [`case`]: steps and comparisons
//! - [`run`]: how many cases, from which seeds, for how long; what was found is kept in `regressions.jsonl`

pub mod allowed;
pub mod case;
pub mod choose;
pub mod op;
pub mod perform;
pub mod run;
pub mod user;
pub mod words;

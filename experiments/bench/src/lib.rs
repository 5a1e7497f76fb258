//! `eke bench`: experiments whose figures come out as tidy rows.
//!
//! # Layout
//! - [`paging`], [`switch`], [`capacity`]: the experiments
//! - [`experiment`]: what they have in common
//! - [`fault`]: what goes wrong in all of them
//! - [`peers`]: what is compared: today's tools and eke, and how each is arranged on the machine
//! - [`session`]: what a person at a small machine does, as data and events
//! - [`desktop`]: the driver that does it, with a real X server, window manager and viewers
//! - [`stage`]: programs and documents on a slow disk
//! - [`documents`]: the PDF files that sessions show
//! - [`startup`]: how long programs take to start, cold, warm, and with what was read ahead
//! - [`tabs`]: pages of a local web server in a browser
//! - [`web`]: files of a web server from a slow disk, in little memory
//! - [`guest`]: a session in the small machine, with each peer by its own package where that runs
//! - [`io`]: a reader beside writers on a slow disk
//! - [`report`]: a report as data and as a table; [`rows`]: how it grows
//! - [`page`]: a report as one page with plots
//! - [`reads`]: reads through a cache's mount, beside those of the files themselves
//! - [`link`]: every cipher of ssh on links and CPUs of several kinds, and which one eke chooses
//! - [`store`], [`trace`]: the block store's figures beside a peer's, and hit rates by policy
//! - [`agent`]: what the agent itself costs
//! - [`process`]: what the kernel says of one process; text in, figures out

pub mod agent;
mod cache;
pub mod capacity;
pub mod desktop;
pub mod documents;
pub mod experiment;
pub mod fault;
pub mod foreseen;
pub mod guest;
pub mod io;
pub mod link;
pub mod page;
pub mod paging;
pub mod peers;
pub mod process;
pub mod reads;
pub mod report;
pub mod rows;
pub mod session;
pub mod stage;
pub mod startup;
pub mod store;
pub mod switch;
pub mod tabs;
pub mod trace;
pub mod web;

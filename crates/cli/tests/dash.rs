//! `eke dash` and `eke metrics`: the built programs, an agent on a made-up machine, a real browser, a real Prometheus.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod common;

#[path = "dash/access.rs"]
mod access;
#[path = "dash/browser.rs"]
mod browser;
#[path = "dash/clients.rs"]
mod clients;
#[path = "dash/disks.rs"]
mod disks;
#[path = "dash/environment.rs"]
mod environment;
#[path = "dash/page.rs"]
mod page;
#[path = "dash/prometheus.rs"]
mod prometheus;
#[path = "dash/silent.rs"]
mod silent;

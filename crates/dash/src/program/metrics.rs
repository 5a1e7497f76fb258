//! `eke metrics --listen`: the metrics over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use eke_client::reading;
use eke_dash::server::{listen, scrape};
use eke_linux::Root;
use eke_present::exit::{Outcome, Status};
use eke_present::putln;

use super::listening::{failure, signals};

/// Serves until a signal.
pub fn run(root: &Root, address: SocketAddr) -> Outcome {
    let shutdown = signals()?;
    let listener = listen(address).map_err(failure)?;
    let address = listener.local_addr()?;
    putln!("Metrics are at http://{address}/metrics. Ctrl-C ends it.");
    let root = root.clone();
    let read: scrape::Read = Arc::new(move || reading(&root).map_err(|failure| failure.to_string()));
    scrape::run(listener, address, read, shutdown).map_err(failure)?;
    Ok(Status::Done)
}

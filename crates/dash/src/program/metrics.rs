//! `eke metrics --listen`: the metrics over HTTP.

use std::net::SocketAddr;

use eke_client::reading;
use eke_client::snapshot::Reader;
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
    let mut reader = Reader::new(root.clone());
    let read: scrape::Read = Box::new(move || reading(&mut reader).map_err(|failure| failure.to_string()));
    scrape::run(listener, address, read, shutdown).map_err(failure)?;
    Ok(Status::Done)
}

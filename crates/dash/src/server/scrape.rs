//! The metrics over HTTP: `/metrics`.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use eke_metrics::text::text;
use eke_metrics::{Format, Reading};
use tokio::sync::Mutex;

use super::guard::is_this_machine;
use super::places::Bounds;
use super::serve;
use crate::error::Result;

/// Reads the machine; an error is a sentence. It may take seconds.
pub type Read = Box<dyn FnMut() -> std::result::Result<Reading, String> + Send>;

/// Scrapes within this time share a reading, which limits the cost of a flood.
const FRESH: Duration = Duration::from_millis(500);

/// One reading at a time, from the agent or the machine.
type ScrapeState = Arc<Mutex<Newest>>;

struct Newest {
    read: Read,
    reading: Option<(Instant, Reading)>,
}

impl Newest {
    fn get(&mut self) -> std::result::Result<&Reading, String> {
        let reading = match self.reading.take() {
            Some(known) if known.0.elapsed() < FRESH => known,
            _ => {
                let reading = (self.read)()?;
                (Instant::now(), reading)
            }
        };
        Ok(&self.reading.insert(reading).1)
    }
}

/// Serves metrics until `shutdown` becomes readable.
///
/// # Errors
/// The kernel's error if the listener cannot be used.
pub fn run(listener: TcpListener, address: SocketAddr, read: Read, shutdown: UnixStream) -> Result<()> {
    let router = Router::new()
        .route("/metrics", get(scrape))
        .route("/", get(|| async { "eke: metrics are at /metrics\n" }))
        .with_state(Arc::new(Mutex::new(Newest { read, reading: None })));
    // On other addresses scrapers use any name, and all clients that reach the port may read, as with node_exporter.
    let router = if address.ip().is_loopback() { router.layer(from_fn(own_names)) } else { router };
    serve(listener, router, shutdown, Bounds::default())
}

async fn own_names(request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|v| v.to_str().ok());
    if host.is_some_and(is_this_machine) {
        return next.run(request).await;
    }
    (StatusCode::FORBIDDEN, "Metrics are served to this machine only: scrape localhost or 127.0.0.1.\n")
        .into_response()
}

async fn scrape(State(shared): State<ScrapeState>, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok());
    let format = Format::accepted(accept);
    let mut newest = shared.lock_owned().await;
    // The reading holds the lock: if a client leaves, the next reading does not start beside this one.
    match tokio::task::spawn_blocking(move || newest.get().map(|reading| text(reading, format))).await {
        Ok(Ok(text)) => ([(header::CONTENT_TYPE, format.content_type())], text).into_response(),
        Ok(Err(why)) => (StatusCode::SERVICE_UNAVAILABLE, why + "\n").into_response(),
        Err(e) => (StatusCode::INTERNAL_SERVER_ERROR, e.to_string()).into_response(),
    }
}

//! Metrics for whoever scrapes: `/metrics`.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::Mutex;

use super::guard::is_this_machine;
use super::serve;
use crate::error::Result;

/// Metrics as text with their media type, for a scraper that sent this `Accept`; or why not. It may take seconds.
pub type Metrics =
    Arc<dyn Fn(Option<&str>) -> std::result::Result<(String, &'static str), String> + Send + Sync>;

/// One scrape at a time: each asks the agent, or reads the machine.
type Turn = Arc<Mutex<Metrics>>;

/// Serves metrics until `shutdown` becomes readable.
///
/// # Errors
/// What the kernel answers when the listener cannot be used.
pub fn run(listener: TcpListener, address: SocketAddr, metrics: Metrics, shutdown: UnixStream) -> Result<()> {
    let router = Router::new()
        .route("/metrics", get(scrape))
        .route("/", get(|| async { "eke: metrics are at /metrics\n" }))
        .with_state(Arc::new(Mutex::new(metrics)));
    // Elsewhere scrapers ask by any name, and whoever can reach the port may read, as with node_exporter.
    let router = if address.ip().is_loopback() { router.layer(from_fn(own_names)) } else { router };
    serve(listener, router, shutdown)
}

async fn own_names(request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|v| v.to_str().ok());
    if host.is_some_and(is_this_machine) {
        return next.run(request).await;
    }
    (StatusCode::FORBIDDEN, "Metrics are for this machine: scrape localhost or 127.0.0.1.\n").into_response()
}

async fn scrape(State(turn): State<Turn>, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).map(str::to_owned);
    let metrics = turn.lock_owned().await;
    match tokio::task::spawn_blocking(move || metrics(accept.as_deref())).await {
        Ok(Ok((text, media))) => ([(header::CONTENT_TYPE, media)], text).into_response(),
        Ok(Err(why)) => (StatusCode::SERVICE_UNAVAILABLE, why + "\n").into_response(),
        Err(e) => (StatusCode::INTERNAL_SERVER_ERROR, e.to_string()).into_response(),
    }
}

//! HTTP/1.1 by axum and hyper, on one thread.
//!
//! # Layout
//! - `accept`: the loop that takes connections; [`places`]: their limits. Pure
//! - [`guard`]: access control by the request's headers. Pure
//! - [`assets`]: the page's files, built into the program
//! - [`page`]: the page's routes; [`scrape`]: those of the metrics

mod accept;
pub mod assets;
pub mod guard;
pub mod page;
pub mod places;
pub mod scrape;

use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::middleware::{Next, from_fn};
use axum::response::Response;

use crate::error::{Error, Result};
use places::Bounds;

/// Listens on an address. Port 0 takes a free port.
///
/// # Errors
/// [`Error::Listen`].
pub fn listen(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).map_err(|source| Error::Listen { address, source })
}

/// Serves within these limits until `shutdown` becomes readable.
fn serve(listener: TcpListener, router: Router, shutdown: UnixStream, bounds: Bounds) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    runtime
        .map_err(Error::Serve)?
        .block_on(async {
            listener.set_nonblocking(true)?;
            shutdown.set_nonblocking(true)?;
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let shutdown = tokio::net::UnixStream::from_std(shutdown)?;
            let router = router.layer(from_fn(harden));
            // Slow clients do not delay the end of the program.
            tokio::select! {
                () = accept::run(listener, router, bounds) => Ok(()),
                ended = shutdown.readable() => ended,
            }
        })
        .map_err(Error::Serve)
}

/// Headers that forbid foreign content, reading and framing by other sites, and caching by proxies.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

async fn harden(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

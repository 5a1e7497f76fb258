//! The page and its data: `/`, its files, and `/now`.

use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use axum::Router;
use axum::extract::{RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::assets::ASSETS;
use super::guard::{Guard, Verdict};
use super::places::Bounds;
use super::serve;
use crate::error::Result;
use crate::history::SPANS;
use crate::live::Live;

/// Serves the page until `shutdown` becomes readable.
///
/// # Errors
/// The kernel's error if the listener cannot be used.
pub fn run(listener: TcpListener, guard: Guard, live: Arc<Live>, shutdown: UnixStream) -> Result<()> {
    serve(listener, router(guard, live), shutdown, Bounds::default())
}

fn router(guard: Guard, live: Arc<Live>) -> Router {
    let mut router = Router::new().route("/now", get(now)).with_state(live);
    for asset in ASSETS {
        let answer = move || async move { ([(header::CONTENT_TYPE, asset.media)], asset.text) };
        router = router.route(asset.path, get(answer));
    }
    router.layer(from_fn_with_state(Arc::new(guard), check_access))
}

async fn check_access(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    match judged(&guard, &request) {
        Verdict::Welcome => next.run(request).await,
        Verdict::Admit(cookie) => {
            let headers = [(header::SET_COOKIE, cookie), (header::LOCATION, "/".to_owned())];
            (StatusCode::SEE_OTHER, headers).into_response()
        }
        Verdict::Stranger => (StatusCode::FORBIDDEN, STRANGER).into_response(),
        Verdict::Locked => (StatusCode::UNAUTHORIZED, LOCKED).into_response(),
    }
}

fn judged(guard: &Guard, request: &Request) -> Verdict {
    let word = |name| request.headers().get(name).and_then(|v| v.to_str().ok());
    guard.judge(word(header::HOST), request.uri().query(), word(header::COOKIE))
}

const STRANGER: &str =
    "This page is served to this machine only: open http://localhost or http://127.0.0.1 with its port.\n";
const LOCKED: &str = "This page needs the token that `eke dash` printed: open the whole address.\n";

/// `/now?span=hour&after=SECONDS`: the view, and the points after that time.
async fn now(State(live): State<Arc<Live>>, RawQuery(query): RawQuery) -> Response {
    let (span, after_s) = requested(query.as_deref().unwrap_or_default());
    match serde_json::to_string(&live.now(span, after_s)) {
        Ok(text) => (HeaderMap::new(), [(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(e) => (StatusCode::INTERNAL_SERVER_ERROR, e.to_string()).into_response(),
    }
}

/// The span and the time of a query; by default the first span and all of it.
fn requested(query: &str) -> (usize, u64) {
    let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    let span = value("span").and_then(|name| SPANS.iter().position(|span| span.name == name));
    (span.unwrap_or(0), value("after").and_then(|s| s.parse().ok()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_query_gets_all_of_the_minutes() {
        assert_eq!(requested("span=day&after=17"), (2, 17));
        assert_eq!(requested("after=-1&span=week"), (0, 0));
        assert_eq!(requested(""), (0, 0));
    }
}

//! The loop that takes connections, within the bounds of [`super::places`].

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::places::{Bounds, Phase, Place, gives_way};

/// The pause after a failed accept(2) (EMFILE, ENOMEM).
const REST: Duration = Duration::from_millis(100);
/// The longest head of a request, in bytes; and the most header lines.
const HEAD_MOST: usize = 16 << 10;
const LINES_MOST: usize = 64;

/// Takes connections until it is dropped, which closes all of them.
pub(super) async fn run(listener: TcpListener, router: Router, bounds: Bounds) {
    let mut all = Connections { router, bounds, list: Vec::new() };
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => all.take(stream, peer),
            Err(e) if is_of_that_connection(&e) => {}
            Err(_) => {
                all.close_one();
                sleep(REST).await;
            }
        }
        // Reads a new connection before the next one can take its place.
        tokio::task::yield_now().await;
    }
}

/// True if the client gave up (accept(2)).
fn is_of_that_connection(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

struct Connections {
    router: Router,
    bounds: Bounds,
    /// Oldest first.
    list: Vec<Connection>,
}

struct Connection {
    peer: IpAddr,
    phase: SharedPhase,
    task: AbortHandle,
}

type SharedPhase = Arc<Mutex<Phase>>;

fn set(phase: &SharedPhase, to: Phase) {
    *phase.lock().unwrap_or_else(PoisonError::into_inner) = to;
}

impl Connections {
    /// Serves a connection, or closes it if there is no place.
    fn take(&mut self, stream: TcpStream, peer: SocketAddr) {
        self.list.retain(|connection| !connection.task.is_finished());
        if self.list.len() >= self.bounds.most && !self.close_one() {
            return;
        }
        let phase = Arc::new(Mutex::new(Phase::Silent));
        let served = serve(stream, self.router.clone(), self.bounds, Arc::clone(&phase));
        let task = tokio::spawn(served).abort_handle();
        self.list.push(Connection { peer: peer.ip(), phase, task });
    }

    /// Closes a connection if all places are taken; false if none can be closed.
    fn close_one(&mut self) -> bool {
        let of = |c: &Connection| (c.peer, *c.phase.lock().unwrap_or_else(PoisonError::into_inner));
        let places: Vec<Place> = self.list.iter().map(of).collect();
        let Some(number) = gives_way(&places) else { return false };
        self.list.remove(number).task.abort();
        true
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        self.list.iter().for_each(|connection| connection.task.abort());
    }
}

/// One request per connection: a connection kept alive would be one more idle one.
async fn serve(stream: TcpStream, router: Router, bounds: Bounds, phase: SharedPhase) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request: Request<Incoming>| {
        set(&phase, Phase::Asked);
        let (answer, phase) = (router.call(request), Arc::clone(&phase));
        async move {
            let answer = answer.await;
            set(&phase, Phase::Answered);
            answer
        }
    });
    let mut http = Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(bounds.head).keep_alive(false);
    http.max_buf_size(HEAD_MOST).max_headers(LINES_MOST);
    // An error concerns only this client.
    let _ = timeout(bounds.whole, http.serve_connection(TokioIo::new(stream), service)).await;
}

#[cfg(test)]
#[path = "accept_tests.rs"]
mod tests;

//! The local web server. It knows a fixed list of pages and reads no files, so there is nothing to escape from.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tiny_http::{Header, Method, Request, Response};

use super::pages;

/// How soon it ends after it was told.
const TICK: Duration = Duration::from_millis(50);
/// Documents may have scripts and pictures from elsewhere: none is run or fetched.
const POLICY: &str =
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-src 'none'";

/// A server on 127.0.0.1, until it is dropped or `shutdown` is set.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
#[error("cannot serve pages on 127.0.0.1: {0}; is the loopback interface up?")]
pub struct Error(String);

impl Server {
    /// Serves `pages` (tab n at `/n/`) at a port that the kernel chooses, in a thread of its own.
    ///
    /// # Errors
    /// The kernel's refusal of the address or of the thread.
    pub fn start(pages: Vec<String>, shutdown: Arc<AtomicBool>) -> Result<Self, Error> {
        let server = tiny_http::Server::http((Ipv4Addr::LOCALHOST, 0)).map_err(|e| Error(e.to_string()))?;
        let address = server.server_addr().to_ip().ok_or_else(|| Error("it has no port".to_owned()))?;
        let over = Arc::new(AtomicBool::new(false));
        let dropped = over.clone();
        let serve = move || {
            while !shutdown.load(Ordering::Relaxed) && !dropped.load(Ordering::Relaxed) {
                if let Ok(Some(request)) = server.recv_timeout(TICK) {
                    answer(request, &pages);
                }
            }
        };
        let thread = std::thread::Builder::new().name("pages".to_owned()).spawn(serve);
        Ok(Self { address, over, thread: Some(thread.map_err(|e| Error(e.to_string()))?) })
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.address.port()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn answer(request: Request, pages: &[String]) {
    let found = (*request.method() == Method::Get).then(|| find(request.url(), pages)).flatten();
    let (kind, status, text) = match found {
        Some((kind, text)) => (kind, 200, text),
        None => ("text/plain", 404, "no such page\n".to_owned()),
    };
    let mut response = Response::from_string(text).with_status_code(status);
    for (name, value) in [("Content-Type", kind), ("Content-Security-Policy", POLICY)] {
        // Fails for what is not ASCII.
        if let Ok(header) = Header::from_bytes(name, value) {
            response.add_header(header);
        }
    }
    // A browser that is gone is no error here.
    let _ = request.respond(response);
}

/// The content type and the text of an address, `None` for all that is not in the list.
fn find(url: &str, pages: &[String]) -> Option<(&'static str, String)> {
    match url {
        "/style.css" => return Some(("text/css", include_str!("site/style.css").to_owned())),
        "/page.js" => return Some(("text/javascript", include_str!("site/page.js").to_owned())),
        _ => {}
    }
    let (tab, rest) = url.strip_prefix('/')?.split_once('/')?;
    let tab: usize = tab.parse().ok()?;
    let page = pages.get(tab)?;
    if rest.is_empty() {
        return Some(("text/html; charset=utf-8", page.clone()));
    }
    let number: usize = rest.strip_suffix(".svg")?.parse().ok()?;
    (number < 4).then(|| ("image/svg+xml", pages::picture(tab, number)))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    fn ask(server: &Server, line: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        write!(stream, "{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    fn server() -> Server {
        Server::start(vec!["first".into(), "second".into()], Arc::default()).unwrap()
    }

    #[test]
    fn pages_are_served_and_nothing_else() {
        let server = server();
        assert!(server.address.ip().is_loopback());
        let second = ask(&server, "GET /1/");
        assert!(second.starts_with("HTTP/1.1 200") && second.contains("second"), "{second}");
        assert!(second.contains("Content-Security-Policy: default-src 'self'"), "{second}");
        assert!(ask(&server, "GET /page.js").contains("text/javascript"));
        assert!(ask(&server, "GET /0/3.svg").contains("<svg"));
        for other in [
            "/",
            "/2/",
            "/0/4.svg",
            "/0/../../etc/passwd",
            "/../../../etc/passwd",
            "/%2e%2e/etc/passwd",
            "//etc/passwd",
            "/-1/",
        ] {
            assert!(ask(&server, &format!("GET {other}")).starts_with("HTTP/1.1 404"), "{other}");
        }
        assert!(ask(&server, "POST /1/").starts_with("HTTP/1.1 404"));
    }

    #[test]
    fn it_ends_when_it_is_dropped_or_told() {
        let told = Arc::new(AtomicBool::new(false));
        let server = Server::start(vec!["x".into()], told.clone()).unwrap();
        told.store(true, Ordering::Relaxed);
        let port = server.port();
        drop(server);
        // The thread that listens ends a moment later.
        let refused = |_: &u32| {
            std::thread::sleep(TICK);
            TcpStream::connect(("127.0.0.1", port)).is_err()
        };
        assert!((0..100).find(refused).is_some());
    }
}

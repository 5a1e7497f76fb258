//! The local web server. It has a fixed list of pages and reads no files, so no path can escape. Each request has its own
//! connection and thread: browsers open connections ahead and leave them idle, and that must not delay others. The documents may
//! be a user's own, so the server answers only programs of this process's user.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::pages;

/// The longest wait before the shutdown flags are read again.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// How long a connection may be idle.
const IDLE: Duration = Duration::from_secs(30);
/// The longest request, in bytes.
const LONGEST: usize = 16 << 10;
/// Documents may have scripts and pictures of other sites: the browser neither runs nor fetches them.
const POLICY: &str =
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-src 'none'";

/// A server on 127.0.0.1, until it is dropped or `shutdown` is set.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
#[error("cannot serve pages on 127.0.0.1: {0}; is the loopback interface up?")]
pub struct Error(#[source] io::Error);

impl Server {
    /// Serves `pages` (tab n at `/n/`) on a port that the kernel chooses, in a thread.
    ///
    /// # Errors
    /// The kernel refuses the address or the thread.
    pub fn start(pages: Vec<String>, shutdown: Arc<AtomicBool>) -> Result<Self, Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error)?;
        let address = listener.local_addr().map_err(Error)?;
        listener.set_nonblocking(true).map_err(Error)?;
        let stop = Arc::new(AtomicBool::new(false));
        let dropped = stop.clone();
        let serve = move || {
            let pages = Arc::new(pages);
            while !shutdown.load(Ordering::Relaxed) && !dropped.load(Ordering::Relaxed) {
                let _ = poll(&mut [PollFd::new(&listener, PollFlags::IN)], Some(&TICK));
                if let Ok((stream, client)) = listener.accept() {
                    if is_this_users(client, address.port()) {
                        let pages = pages.clone();
                        // A browser that has ended is no error here. If no thread starts, the browser retries.
                        let _ = std::thread::Builder::new().spawn(move || answer(stream, &pages));
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("pages".to_owned()).spawn(serve);
        Ok(Self { address, stop, thread: Some(thread.map_err(Error)?) })
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.address.port()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Whether the client is a program of this process's user.
fn is_this_users(client: SocketAddr, port: u16) -> bool {
    let SocketAddr::V4(client) = client else { return false };
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    owner(&table, client, port) == Some(rustix::process::geteuid().as_raw())
}

/// The owner of the socket at `client` that is connected to the server's `port`, from the text of `/proc/net/tcp`. Addresses there
/// are numbers in the machine's byte order (Documentation/networking/proc_net_tcp.rst).
fn owner(table: &str, client: SocketAddrV4, port: u16) -> Option<u32> {
    let address = |ip: &Ipv4Addr, port: u16| format!("{:08X}:{port:04X}", u32::from_ne_bytes(ip.octets()));
    let (from, to) = (address(client.ip(), client.port()), address(&Ipv4Addr::LOCALHOST, port));
    let fields = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let of_client = |f: &Vec<&str>| f.get(1) == Some(&from.as_str()) && f.get(2) == Some(&to.as_str());
    fields.into_iter().find(of_client)?.get(7)?.parse().ok()
}

fn answer(mut stream: TcpStream, pages: &[String]) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(IDLE))?;
    stream.set_write_timeout(Some(IDLE))?;
    let (mut request, mut piece) = (Vec::new(), [0; 4096]);
    while request.len() < LONGEST {
        let n = stream.read(&mut piece)?;
        request.extend_from_slice(&piece[..n]);
        match parse_request(&request) {
            Request::Incomplete if n > 0 => {}
            Request::Get(url) => return reply(&mut stream, find(&url, pages)),
            _ => break,
        }
    }
    reply(&mut stream, None)
}

/// A request, parsed.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// A GET of this address.
    Get(String),
    /// The request is not complete yet.
    Incomplete,
    /// Not a GET, or no request; not served.
    Other,
}

/// Parses the bytes of a request received so far.
pub fn parse_request(bytes: &[u8]) -> Request {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) => Request::Incomplete,
        Ok(_) if request.method == Some("GET") => Request::Get(request.path.unwrap_or_default().to_owned()),
        _ => Request::Other,
    }
}

fn reply(stream: &mut TcpStream, found: Option<(&str, String)>) -> io::Result<()> {
    let (status, kind, text) = match found {
        Some((kind, text)) => ("200 OK", kind, text),
        None => ("404 Not Found", "text/plain", "no such page\n".to_owned()),
    };
    let length = text.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nContent-Security-Policy: {POLICY}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all((head + &text).as_bytes())
}

/// The content type and the text of an address; `None` for addresses that are not in the list.
pub fn find(url: &str, pages: &[String]) -> Option<(&'static str, String)> {
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
    fn a_connections_owner_is_in_the_kernels_table() {
        let table = format!(
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
             0: {0:08X}:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1\n   \
             1: {0:08X}:9C40 {0:08X}:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 2\n   \
             2: {0:08X}:1F90 {0:08X}:9C40 01 00000000:00000000 00:00000000 00000000     0        0 3\n",
            u32::from_ne_bytes([127, 0, 0, 1])
        );
        let client = |port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        assert_eq!(owner(&table, client(40000), 8080), Some(1000));
        assert_eq!((owner(&table, client(40001), 8080), owner("", client(40000), 8080)), (None, None));
    }

    #[test]
    fn it_ends_when_it_is_dropped_or_shut_down() {
        let shutdown = Arc::new(AtomicBool::new(false));
        let server = Server::start(vec!["x".into()], shutdown.clone()).unwrap();
        shutdown.store(true, Ordering::Relaxed);
        let port = server.port();
        drop(server);
        assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    }

    proptest::proptest! {
        #[test]
        fn foreign_requests_never_panic(bytes: Vec<u8>) {
            if let Request::Get(url) = parse_request(&bytes) {
                let _ = find(&url, &[]);
            }
        }
    }
}

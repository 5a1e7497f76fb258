use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use axum::routing::{get, post};

use super::*;

/// A server that runs until it is dropped.
struct Served {
    address: SocketAddr,
    _shutdown: UnixStream,
}

/// Deadlines are short in tests that wait for them, else long.
fn served(bounds: Bounds) -> Served {
    let router = Router::new()
        .route("/", get(|| async { "here" }))
        .route("/large", get(|| async { vec![b'x'; 64 << 20] }))
        .route("/body", post(|body: String| async { body }));
    let listener = super::super::listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = listener.local_addr().unwrap();
    let (shutdown, other) = UnixStream::pair().unwrap();
    std::thread::spawn(move || super::super::serve(listener, router, other, bounds));
    Served { address, _shutdown: shutdown }
}

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(200);

impl Served {
    fn connect(&self, sent: &[u8]) -> std::net::TcpStream {
        let mut stream = std::net::TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        // It may be closed already.
        let _ = stream.write_all(sent);
        stream
    }

    fn is_there(&self) -> bool {
        let mut text = String::new();
        let read = self.connect(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").read_to_string(&mut text);
        read.is_ok() && text.starts_with("HTTP/1.1 200") && text.ends_with("here")
    }
}

/// Waits until the server closes; returns the number of bytes received.
fn closed(mut stream: std::net::TcpStream) -> usize {
    let mut received = 0;
    loop {
        match stream.read(&mut [0; 64 << 10]) {
            Ok(0) => return received,
            Ok(count) => received += count,
            Err(e) if e.kind() == ErrorKind::ConnectionReset => return received,
            Err(e) => panic!("it was not closed: {e}"),
        }
    }
}

#[test]
fn silent_clients_are_closed_for_one_that_asks() {
    let server = served(Bounds { most: 8, head: LONG, whole: LONG });
    let silent: Vec<_> = (0..40).map(|_| server.connect(b"")).collect();
    let half: Vec<_> = (0..40).map(|_| server.connect(b"GET / HTTP/1.1\r\nHo")).collect();
    for _ in 0..3 {
        assert!(server.is_there());
    }
    for (number, stream) in silent.into_iter().enumerate() {
        assert_eq!(closed(stream), 0, "{number}");
    }
    drop(half);
}

#[test]
fn clients_that_do_not_read_are_closed_for_one_that_asks() {
    let server = served(Bounds { most: 8, head: LONG, whole: LONG });
    let deaf: Vec<_> = (0..40).map(|_| server.connect(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")).collect();
    for _ in 0..3 {
        assert!(server.is_there());
    }
    drop(deaf);
}

/// Each byte comes in time, but the whole head does not.
#[test]
fn a_head_that_comes_byte_by_byte_is_cut_off() {
    let server = served(Bounds { most: 8, head: SHORT, whole: LONG });
    let stream = server.connect(b"GET / HTTP/1.1\r\nX: ");
    let mut writer = stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || {
        while writer.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    closed(stream);
    writing.join().unwrap();
}

#[test]
fn a_client_that_never_asks_or_asks_once_is_closed() {
    let server = served(Bounds { most: 8, head: SHORT, whole: LONG });
    assert_eq!(closed(server.connect(b"")), 0);
    assert!(closed(server.connect(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")) > 0);
}

#[test]
fn a_missing_body_and_an_unread_answer_time_out() {
    let server = served(Bounds { most: 8, head: LONG, whole: SHORT });
    let body = b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nx";
    assert_eq!(closed(server.connect(body)), 0);
    let deaf = server.connect(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    std::thread::sleep(2 * SHORT);
    assert!(closed(deaf) < 64 << 20);
}

#[test]
fn an_endless_head_is_refused() {
    let server = served(Bounds { most: 8, head: LONG, whole: LONG });
    let stream = server.connect(&[b"GET / HTTP/1.1\r\nX: ".as_slice(), &vec![b'x'; 1 << 20]].concat());
    closed(stream);
    assert!(server.is_there());
}

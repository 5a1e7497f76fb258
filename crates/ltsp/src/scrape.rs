//! A client's page of metrics: one request of HTTP/1.0, within a deadline.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Requests at the same time.
const AT_ONCE: usize = 32;
/// A page has some 20 KB; a client's may be any, and so many are in memory at once.
const LARGEST: usize = 128 << 10;
const HEADERS: usize = 32;

/// What `read` makes of the pages of these addresses, in their order; a page is dropped at once. An error is the kernel's or a sentence.
pub fn all<T: Send>(
    addresses: &[Option<SocketAddr>],
    deadline: Duration,
    read: &(dyn Fn(io::Result<String>) -> T + Sync),
) -> Vec<Option<T>> {
    let mut answers = Vec::with_capacity(addresses.len());
    for chunk in addresses.chunks(AT_ONCE) {
        std::thread::scope(|scope| {
            let threads: Vec<_> = chunk
                .iter()
                .map(|address| address.map(|address| scope.spawn(move || read(page(address, deadline)))))
                .collect();
            let lost = || read(Err(io::Error::other("the thread of this request ended")));
            answers.extend(threads.into_iter().map(|t| t.map(|t| t.join().unwrap_or_else(|_| lost()))));
        });
    }
    answers
}

/// The page at `/metrics`.
///
/// # Errors
/// The kernel's; `TimedOut` after the deadline; `InvalidData` for an answer that is not HTTP with status 200.
pub fn page(address: SocketAddr, deadline: Duration) -> io::Result<String> {
    let until = Instant::now() + deadline;
    let mut stream = TcpStream::connect_timeout(&address, deadline)?;
    let request =
        format!("GET /metrics HTTP/1.0\r\nHost: {address}\r\nAccept: text/plain;version=0.0.4\r\n\r\n");
    stream.set_write_timeout(Some(deadline))?;
    stream.write_all(request.as_bytes())?;
    body(&whole(&mut stream, until)?)
}

/// Reads to the end of the connection.
fn whole(stream: &mut TcpStream, until: Instant) -> io::Result<Vec<u8>> {
    let (mut answer, mut buffer) = (Vec::new(), [0; 8192]);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(answer),
            Ok(n) => answer.extend_from_slice(&buffer[..n]),
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
        if answer.len() > LARGEST {
            return Err(invalid(format!("the answer is longer than {} KiB", LARGEST >> 10)));
        }
    }
}

/// The body of an answer.
///
/// # Errors
/// It is not HTTP, or its status is not 200.
pub fn body(answer: &[u8]) -> io::Result<String> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let head = match response.parse(answer) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) => return Err(invalid("the answer ends in its head".to_owned())),
        Err(e) => return Err(invalid(format!("the answer is not HTTP: {e}"))),
    };
    match response.code {
        Some(200) => Ok(String::from_utf8_lossy(answer.get(head..).unwrap_or_default()).into_owned()),
        code => Err(invalid(format!("the answer has status {}", code.unwrap_or_default()))),
    }
}

fn invalid(why: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Far longer than any answer here takes.
    const LONG: Duration = Duration::from_secs(60);

    fn answering(answer: &'static str) -> io::Result<String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 512];
            let n = stream.read(&mut request).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8_lossy(&request[..n]).into_owned()
        });
        let page = page(address, LONG);
        assert!(server.join().unwrap().starts_with("GET /metrics HTTP/1.0\r\n"));
        page
    }

    #[test]
    fn a_page_is_the_body_of_an_answer() {
        assert_eq!(answering("HTTP/1.0 200 OK\r\ncontent-length: 4\r\n\r\na 1\n").unwrap(), "a 1\n");
    }

    #[test]
    fn other_answers_are_errors_with_their_reason() {
        for (answer, why) in [
            ("HTTP/1.0 503 No\r\n\r\nwhy\n", "the answer has status 503"),
            ("HTTP/1.0 200", "the answer ends in its head"),
            ("SSH-2.0-OpenSSH_9.2\r\n", "the answer is not HTTP: invalid HTTP version"),
        ] {
            assert_eq!(answering(answer).unwrap_err().to_string(), why);
        }
    }

    #[test]
    fn an_answer_without_an_end_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"HTTP/1.0 200 OK\r\n\r\n").unwrap();
            while stream.write_all(&[b'x'; 1024]).is_ok() {}
        });
        let error = page(address, LONG).unwrap_err().to_string();
        assert_eq!(error, "the answer is longer than 128 KiB");
        server.join().unwrap();
    }

    #[test]
    fn a_client_that_says_nothing_ends_at_the_deadline() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let silent = listener.local_addr().unwrap();
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let kinds = all(&[Some(silent), None, Some(closed)], Duration::from_millis(50), &|page| {
            page.unwrap_err().kind()
        });
        assert_eq!(kinds, [Some(ErrorKind::TimedOut), None, Some(ErrorKind::ConnectionRefused)]);
    }
}

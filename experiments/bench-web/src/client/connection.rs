//! One persistent connection.

use std::hash::Hasher;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::net::{RecvFlags, recv};
use twox_hash::XxHash64;

use super::reply::{Head, head};

/// The longest time without a byte from the server.
const PATIENCE: Duration = Duration::from_secs(120);
/// The most bytes read from the socket at once.
const BUFFER: usize = 512 << 10;
/// The longest head of a reply.
const LONGEST: usize = 16 << 10;

/// What a client got whose reply is complete, and wrong.
pub const OTHER_BYTES: &str = "other bytes than the file has";

/// A connection with its buffer.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// Connects, and bounds how long a reply may take.
///
/// # Errors
/// The address does not answer.
pub fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

impl Connection {
    /// A connection on this stream.
    pub fn new(stream: TcpStream) -> Self {
        Self { stream, buffer: vec![0; BUFFER] }
    }

    /// Requests a file and receives all of it. Adds received bytes to `counted` at once. With `hash`, compares the bytes with it. Without,
    /// the kernel discards the bytes, so that clients use little of the CPU that they share with the server.
    ///
    /// # Errors
    /// The reply is wrong. The text continues a sentence after "got".
    pub fn get(
        &mut self,
        path: &str,
        bytes: u64,
        hash: Option<u64>,
        counted: &AtomicU64,
    ) -> Result<(), String> {
        let request = format!("GET /{path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        self.stream.write_all(request.as_bytes()).map_err(|e| broken(&e))?;
        let (begun, body) = self.head()?;
        if body != bytes {
            return Err(format!("{body} bytes instead of {bytes}"));
        }
        let mut left = body.checked_sub(begun.len() as u64).ok_or("more bytes than requested")?;
        counted.fetch_add(begun.len() as u64, Ordering::Relaxed);
        let Some(expected) = hash else { return self.skip(left, counted) };
        let mut received = XxHash64::with_seed(0);
        received.write(&self.buffer[begun]);
        while left > 0 {
            let read = self.some(left)?;
            received.write(&self.buffer[..read]);
            counted.fetch_add(read as u64, Ordering::Relaxed);
            left -= read as u64;
        }
        if received.finish() == expected { Ok(()) } else { Err(OTHER_BYTES.to_owned()) }
    }

    /// Receives the head. Returns the range of the body's received part in the buffer, and the body's length.
    fn head(&mut self) -> Result<(std::ops::Range<usize>, u64), String> {
        let mut filled = 0;
        loop {
            let read = self.stream.read(&mut self.buffer[filled..LONGEST]).map_err(|e| broken(&e))?;
            filled += read;
            match head(&self.buffer[..filled]) {
                Head::Whole { head, body } => return Ok((head..filled, body)),
                Head::Wrong(what) => return Err(what),
                Head::More if read == 0 => {
                    return Err("the end of the connection instead of a reply".to_owned());
                }
                Head::More => {}
            }
        }
    }

    fn some(&mut self, most: u64) -> Result<usize, String> {
        let most = BUFFER.min(usize::try_from(most).unwrap_or(BUFFER));
        match self.stream.read(&mut self.buffer[..most]) {
            Ok(0) => Err("the end of the connection in the middle of a reply".to_owned()),
            Ok(read) => Ok(read),
            Err(e) => Err(broken(&e)),
        }
    }

    /// `MSG_TRUNC` on a stream: the kernel drops the bytes instead of copying them (tcp(7)).
    fn skip(&mut self, mut left: u64, counted: &AtomicU64) -> Result<(), String> {
        while left > 0 {
            let most = BUFFER.min(usize::try_from(left).unwrap_or(BUFFER));
            match recv(&self.stream, &mut self.buffer[..most], RecvFlags::TRUNC) {
                Ok((_, 0)) => return Err("the end of the connection in the middle of a reply".to_owned()),
                Ok((_, read)) => {
                    counted.fetch_add(read as u64, Ordering::Relaxed);
                    left = left.saturating_sub(read as u64);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(broken(&e.into())),
            }
        }
        Ok(())
    }
}

fn broken(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("nothing for {} s", PATIENCE.as_secs())
        }
        _ => format!("an error of the connection: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};

    /// A client's result with a server that sends `body` after a head with `length`.
    fn got(length: usize, body: Vec<u8>, hash: Option<u64>) -> (Result<(), String>, u64) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let bytes = body.len() as u64;
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]).unwrap();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            stream.write_all(head.as_bytes()).unwrap();
            let _ = stream.write_all(&body);
        });
        let counted = AtomicU64::new(0);
        let mut connection = Connection::new(connect(address).unwrap());
        let got = connection.get("x", bytes.max(length as u64), hash, &counted);
        drop(connection);
        server.join().unwrap();
        (got, counted.into_inner())
    }

    #[test]
    fn a_complete_file_is_counted_and_compared() {
        let body: Vec<u8> = (0..3_000_000_u32).map(|i| (i / 7) as u8).collect();
        let hash = XxHash64::oneshot(0, &body);
        for hash in [None, Some(hash)] {
            assert_eq!(got(body.len(), body.clone(), hash), (Ok(()), body.len() as u64));
        }
        let (wrong, _) = got(body.len(), body.clone(), Some(hash ^ 1));
        assert_eq!(wrong.unwrap_err(), "other bytes than the file has");
    }

    #[test]
    fn a_short_reply_is_an_error() {
        for hash in [None, Some(0)] {
            let (wrong, _) = got(2_000_000, vec![1; 1_000_000], hash);
            assert_eq!(wrong.unwrap_err(), "the end of the connection in the middle of a reply");
        }
        let (wrong, _) = got(10, vec![1; 20], None);
        assert_eq!(wrong.unwrap_err(), "10 bytes instead of 20");
    }
}

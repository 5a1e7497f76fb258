//! The far end of the link without ssh: `eke lab link-end`. If eke is installed there, a measurement starts it through ssh.
//!
//! It listens on the address by which ssh came in and prints its port and a token through ssh. It sends and takes zeros for a client that has the
//! token, and ends with a line or the end of its standard input. Only zeros and the token go over the link unencrypted.
//!
//! ```text
//! token\n -> ok\n    send N\n -> N zeros    take N\n, N bytes -> taken\n
//! ```

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

/// The first word of the line that it prints, before the port and the token.
pub const HELLO: &str = "eke-link-end-1";
/// The largest request.
const MOST_BYTES: u64 = 1 << 30;
/// The most connections without the token, which any user can make; a new one closes the oldest.
const MOST_UNKNOWN: usize = 64;
const LONGEST_LINE: u64 = 64;
/// A connection that is silent for so long is closed.
const PATIENCE: Duration = Duration::from_secs(10);
const BLOCK: usize = 256 << 10;

/// The address of this end in `SSH_CONNECTION` (ssh(1)): client address, client port, server address, server port.
pub fn own_address(ssh_connection: &str) -> Option<IpAddr> {
    ssh_connection.split_whitespace().nth(2)?.parse().ok()
}

/// Connections that have not sent the token yet, oldest first, each with its number.
type Unknown = Mutex<Vec<(u64, TcpStream)>>;

/// Serves clients that have the token, until `end` has a byte or is closed.
///
/// # Errors
/// poll(2)'s or accept(2)'s.
pub fn serve(listener: &TcpListener, token: &str, end: impl AsFd) -> io::Result<()> {
    let token: Arc<str> = token.into();
    let unknown = Arc::new(Unknown::default());
    for number in 0.. {
        let mut fds = [PollFd::new(&end, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
        match poll(&mut fds, None) {
            Err(rustix::io::Errno::INTR) => continue,
            result => result?,
        };
        if !fds[0].revents().is_empty() {
            return Ok(());
        }
        let (stream, _) = listener.accept()?;
        wait_for_the_token(&unknown, number, stream.try_clone()?);
        let (token, unknown) = (Arc::clone(&token), Arc::clone(&unknown));
        std::thread::Builder::new().spawn(move || {
            let is_no_longer_unknown = || lock(&unknown).retain(|(other, _)| *other != number);
            // a client that breaks off needs no message
            let _ = talk(&stream, &token, &is_no_longer_unknown);
            is_no_longer_unknown();
        })?;
    }
    Ok(())
}

fn lock(unknown: &Unknown) -> MutexGuard<'_, Vec<(u64, TcpStream)>> {
    unknown.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait_for_the_token(unknown: &Unknown, number: u64, stream: TcpStream) {
    let mut all = lock(unknown);
    if all.len() >= MOST_UNKNOWN {
        let _ = all.remove(0).1.shutdown(Shutdown::Both);
    }
    all.push((number, stream));
}

/// Reads the line that ended it and not a byte more: the rest is for the shell that started it.
///
/// # Errors
/// read(2)'s.
pub fn pass_line(input: impl AsFd) -> io::Result<()> {
    let mut byte = [0];
    while rustix::io::read(&input, &mut byte)? == 1 && byte[0] != b'\n' {}
    Ok(())
}

fn talk(stream: &TcpStream, token: &str, accept: &dyn Fn()) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::with_capacity(BLOCK, stream);
    if line(&mut reader)?.as_deref() != Some(token) {
        return Ok(());
    }
    accept();
    (&mut &*stream).write_all(b"ok\n")?;
    while let Some(request) = line(&mut reader)? {
        let (verb, bytes) = request.split_once(' ').unwrap_or_default();
        let bytes = bytes.parse::<u64>().ok().filter(|bytes| *bytes <= MOST_BYTES);
        match (verb, bytes) {
            ("send", Some(bytes)) => zeros(stream, bytes)?,
            ("take", Some(bytes)) => {
                io::copy(&mut reader.by_ref().take(bytes), &mut io::sink())?;
                (&mut &*stream).write_all(b"taken\n")?;
            }
            _ => return Ok(()),
        }
    }
    Ok(())
}

/// A line without its end; `None`: the connection was closed, or the line is too long.
pub(crate) fn line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut bytes)?;
    let is_whole = bytes.pop() == Some(b'\n');
    Ok(is_whole.then(|| String::from_utf8_lossy(&bytes).into_owned()))
}

pub(crate) fn zeros(mut stream: impl Write, bytes: u64) -> io::Result<()> {
    let block = vec![0; BLOCK];
    let mut left = bytes;
    while left > 0 {
        let n = left.min(BLOCK as u64) as usize;
        stream.write_all(&block[..n])?;
        left -= n as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    /// Serves on 127.0.0.1 while `with` runs with a connection to it.
    fn served<T>(with: impl FnOnce(&TcpStream) -> T) -> T {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (theirs, ours) = UnixStream::pair().unwrap();
        let server = std::thread::spawn(move || serve(&listener, "secret", theirs));
        let result = with(&TcpStream::connect(address).unwrap());
        drop(ours);
        server.join().unwrap().unwrap();
        result
    }

    #[test]
    fn it_sends_and_takes_for_a_client_with_the_token() {
        served(|mut stream| {
            let mut reader = BufReader::new(stream);
            stream.write_all(b"secret\nsend 100000\n").unwrap();
            assert_eq!(line(&mut reader).unwrap().as_deref(), Some("ok"));
            let mut zeros = vec![1; 100_000];
            reader.read_exact(&mut zeros).unwrap();
            assert!(zeros.iter().all(|b| *b == 0));
            stream.write_all(b"take 3\nabc").unwrap();
            assert_eq!(line(&mut reader).unwrap().as_deref(), Some("taken"));
        });
    }

    #[test]
    fn silent_connections_do_not_lock_out_a_client_with_the_token() {
        served(|first| {
            let address = first.peer_addr().unwrap();
            let silent: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(address).unwrap()).collect();
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"secret\nsend 3\n").unwrap();
            let mut answer = [1; 6];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"ok\n\0\0\0");
            drop(silent);
        });
    }

    #[test]
    fn what_follows_the_last_line_is_left_for_the_shell() {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        ours.write_all(b"-\nsample 1\n").unwrap();
        drop(ours);
        pass_line(&theirs).unwrap();
        let mut rest = String::new();
        theirs.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "sample 1\n");
    }

    #[test]
    fn a_wrong_token_or_request_closes_the_connection() {
        for request in ["wrong\nsend 5\n", "secret\nsend 99999999999\n", "secret\nrm -rf\n", "secret\n\n"] {
            let answer = served(|mut stream| {
                stream.write_all(request.as_bytes()).unwrap();
                let mut answer = String::new();
                let _ = stream.read_to_string(&mut answer);
                answer
            });
            assert!(answer.is_empty() || answer == "ok\n", "{request:?}: {answer:?}");
            assert_eq!(answer.is_empty(), request.starts_with("wrong"), "{request:?}");
        }
    }

    #[test]
    fn the_address_is_the_one_that_ssh_came_in_by() {
        assert_eq!(own_address("10.0.0.1 50000 10.0.0.2 22"), Some("10.0.0.2".parse().unwrap()));
        assert_eq!(own_address("10.0.0.1 50000"), None);
    }
}

//! The link without ssh, if eke is on the far end too ([`crate::far`]): zeros in one stream and in several, in both directions.

use std::io::{BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use eke_linux::token::Token;
use serde::Serialize;

use super::at_once::at_once;
use super::channel::Channel;
use super::connect::Ends;
use crate::far;
use crate::plan::{BARE_SLICES, BARE_STREAMS};
use crate::throughput::{both_ways, median};

/// The rates of the link without ssh.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bare {
    /// MB/s of one stream from the far end, the median.
    pub to_here: f64,
    /// MB/s of one stream to the far end, the median.
    pub to_there: f64,
    /// The number of parallel streams.
    pub streams: usize,
    /// MB/s of the parallel streams together, from the far end.
    pub together_to_here: f64,
    /// MB/s of the parallel streams together, to the far end.
    pub together_to_there: f64,
    /// Bytes moved in all.
    pub bytes: u64,
}

impl Bare {
    /// MB/s of one stream, with equal amounts in both directions.
    pub fn rate(&self) -> f64 {
        both_ways(self.to_here, self.to_there)
    }

    /// The highest rate in either direction.
    pub fn most(&self) -> f64 {
        self.to_here.max(self.to_there).max(self.together_to_here).max(self.together_to_there)
    }
}

/// A firewall that drops packets costs so long.
const CONNECTS_WITHIN: Duration = Duration::from_secs(2);
const STALLED_AFTER: Duration = Duration::from_secs(8);

/// The far end's address for the link without ssh: the one that ssh itself connected to. The far end only confirms it, so that it cannot make
/// this machine connect to another one.
///
/// # Errors
/// The reason as a sentence: no eke there, a proxy, or translated addresses.
pub(super) fn far_address(ends: &Ends) -> Result<IpAddr, String> {
    let Some(address) = ends.address.filter(|_| !ends.has_proxy) else {
        return Err("the connection goes through a proxy or a jump host".to_owned());
    };
    if !ends.there.tools.iter().any(|tool| tool == "eke") {
        return Err("eke is not installed on the far end".to_owned());
    }
    match ends.there.connection {
        Some((_, own)) if own.to_canonical() == address.to_canonical() => Ok(address),
        Some((_, own)) => Err(format!(
            "ssh connected to {address}, and the far end says that its address is {own}: addresses are translated, or the answer is false"
        )),
        None => Err("the far end does not say which address it has".to_owned()),
    }
}

/// Measures in slices of `slice_bytes` until `end`; `far` is the far end's address, `channel` a shell there.
///
/// # Errors
/// The reason as a sentence: the eke there is too old, or its address or port cannot be reached.
pub(super) fn bare(
    channel: &mut Channel<'_>,
    far: IpAddr,
    slice_bytes: u64,
    end: Instant,
) -> Result<Bare, String> {
    let line = channel.begin_bare().map_err(|e| e.to_string())?;
    let measured = endpoint(&line, far).and_then(|endpoint| measure(&endpoint, slice_bytes, end));
    channel.end_bare().map_err(|e| e.to_string())?;
    measured
}

/// The address and the token of the far end.
struct Endpoint {
    address: SocketAddr,
    token: String,
}

fn endpoint(line: &str, far: IpAddr) -> Result<Endpoint, String> {
    let mut words = line.split_whitespace();
    let is_it = words.next() == Some(far::HELLO);
    let port = words.next().and_then(|w| w.parse().ok());
    match (port, words.next()) {
        // It goes to a port that the far end chooses.
        (Some(_), Some(token)) if is_it && !Token::is_token(token) => {
            Err("the far end sent no token of eke's, so nothing was sent to its port".to_owned())
        }
        (Some(port), Some(token)) if is_it => {
            Ok(Endpoint { address: SocketAddr::new(far, port), token: token.to_owned() })
        }
        _ => Err("the eke there is another version, which has no `lab link-end`".to_owned()),
    }
}

fn measure(endpoint: &Endpoint, slice_bytes: u64, end: Instant) -> Result<Bare, String> {
    let mut streams = vec![connect(endpoint, end)?];
    let failed = |e: std::io::Error| format!("the connection to {} broke off: {e}", endpoint.address);
    let (mut to_here, mut to_there) = (Vec::new(), Vec::new());
    // the first slice of each does not count: a connection starts slowly
    for _ in 0..=BARE_SLICES {
        to_here.push(streams[0].get(slice_bytes).map_err(failed)?);
        to_there.push(streams[0].put(slice_bytes).map_err(failed)?);
    }
    while streams.len() < BARE_STREAMS {
        streams.push(connect(endpoint, end)?);
    }
    let all = slice_bytes * BARE_STREAMS as u64;
    let got = at_once(&mut streams, |s| s.get(slice_bytes).map(drop)).map_err(failed)?;
    let taken = at_once(&mut streams, |s| s.put(slice_bytes).map(drop)).map_err(failed)?;
    let slices = 2 * (1 + BARE_SLICES) + 2 * BARE_STREAMS;
    Ok(Bare {
        to_here: median(&to_here[1..]),
        to_there: median(&to_there[1..]),
        streams: streams.len(),
        together_to_here: rate(all, got),
        together_to_there: rate(all, taken),
        bytes: slice_bytes * slices as u64,
    })
}

fn connect(endpoint: &Endpoint, end: Instant) -> Result<Stream, String> {
    let failed = |e: std::io::Error| {
        format!(
            "{} cannot be reached without ssh ({e}): a firewall, or addresses that are translated",
            endpoint.address
        )
    };
    let stream = TcpStream::connect_timeout(&endpoint.address, CONNECTS_WITHIN).map_err(failed)?;
    Stream::greet(stream, &endpoint.token, end).map_err(failed)
}

struct Stream {
    stream: Limited,
    reader: BufReader<Limited>,
}

/// A connection until the end of the host's time: a far end that passes a byte now and then does not hold it open.
struct Limited {
    stream: TcpStream,
    end: Instant,
}

impl Limited {
    fn check(&self) -> std::io::Result<&TcpStream> {
        (Instant::now() < self.end).then_some(&self.stream).ok_or_else(|| std::io::ErrorKind::TimedOut.into())
    }
}

impl Read for Limited {
    fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
        self.check()?.read(room)
    }
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.check()?.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Stream {
    fn greet(stream: TcpStream, token: &str, end: Instant) -> std::io::Result<Self> {
        stream.set_read_timeout(Some(STALLED_AFTER))?;
        stream.set_write_timeout(Some(STALLED_AFTER))?;
        stream.set_nodelay(true)?;
        let reader = BufReader::with_capacity(256 << 10, Limited { stream: stream.try_clone()?, end });
        let mut greeted = Self { stream: Limited { stream, end }, reader };
        greeted.stream.write_all(format!("{token}\n").as_bytes())?;
        greeted.expect("ok")?;
        Ok(greeted)
    }

    fn expect(&mut self, word: &str) -> std::io::Result<()> {
        if far::line(&mut self.reader)?.as_deref() == Some(word) {
            return Ok(());
        }
        Err(std::io::Error::other(format!("it did not answer \"{word}\"")))
    }

    /// Receives so many bytes; MB/s.
    fn get(&mut self, bytes: u64) -> std::io::Result<f64> {
        let start = Instant::now();
        self.stream.write_all(format!("send {bytes}\n").as_bytes())?;
        let got = std::io::copy(&mut self.reader.by_ref().take(bytes), &mut std::io::sink())?;
        if got < bytes {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        Ok(rate(bytes, start.elapsed()))
    }

    /// Sends so many bytes until the far end took them; MB/s.
    fn put(&mut self, bytes: u64) -> std::io::Result<f64> {
        let start = Instant::now();
        self.stream.write_all(format!("take {bytes}\n").as_bytes())?;
        far::zeros(&mut self.stream, bytes)?;
        self.expect("taken")?;
        Ok(rate(bytes, start.elapsed()))
    }
}

fn rate(bytes: u64, took: Duration) -> f64 {
    bytes as f64 / 1e6 / took.as_secs_f64().max(1e-6)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_link_is_measured_in_both_directions_and_by_several_streams() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (theirs, ours) = UnixStream::pair().unwrap();
        let server = std::thread::spawn(move || far::serve(&listener, "word", theirs));
        let end = Instant::now() + Duration::from_secs(1000);
        let found = measure(&Endpoint { address, token: "word".into() }, 100_000, end).unwrap();
        assert!(found.rate() > 0.0 && found.together_to_here > 0.0 && found.together_to_there > 0.0);
        assert_eq!((found.streams, found.bytes), (4, 100_000 * 16));
        let late = measure(&Endpoint { address, token: "word".into() }, 1, Instant::now()).unwrap_err();
        assert!(late.contains("timed out"), "{late}");
        let refused = measure(&Endpoint { address, token: "other".into() }, 1, end).unwrap_err();
        assert!(refused.contains("cannot be reached without ssh"), "{refused}");
        drop(ours);
        server.join().unwrap().unwrap();
    }

    #[test]
    fn the_line_of_an_older_eke_is_no_endpoint() {
        let far = "10.0.0.2".parse().unwrap();
        let token = Token::random().unwrap();
        let line = |start: &str| format!("{start} {}", token.text());
        let found = endpoint(&line("eke-link-end-1 4711"), far).unwrap();
        assert_eq!((found.address, found.token.as_str()), ("10.0.0.2:4711".parse().unwrap(), token.text()));
        for line in
            ["none", "", &line("eke-link-end-1 x"), "eke-link-end-1 4711", &line("eke-link-end-2 4711")]
        {
            assert!(endpoint(line, far).is_err(), "{line}");
        }
    }

    #[test]
    fn only_a_token_is_sent_to_a_port_of_the_far_ends_choice() {
        let far = "10.0.0.2".parse().unwrap();
        let longer = "a".repeat(33);
        for word in ["FLUSHALL", "abc", &longer, &longer[..31], &"g".repeat(32), &"A".repeat(32)] {
            let refused = endpoint(&format!("eke-link-end-1 6379 {word}"), far).err().unwrap();
            assert!(refused.contains("no token"), "{word}: {refused}");
        }
    }
}

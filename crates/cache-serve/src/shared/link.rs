//! A worker's side of the sockets to the engine's process.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use eke_cache_shared::frame::MESSAGE;
use eke_cache_shared::{Link, Shared, SharedOptions};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::process::Sockets;

/// The worker's ends.
#[derive(Debug)]
struct SocketLink {
    asks: Arc<OwnedFd>,
    offers: OwnedFd,
}

impl Link for SocketLink {
    fn ask(&self, message: &[u8]) -> io::Result<()> {
        send(&*self.asks, message, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
        Ok(())
    }

    fn offer(&self, message: &[u8]) -> io::Result<()> {
        loop {
            match send(&self.offers, message, SendFlags::NOSIGNAL) {
                Err(Errno::INTR) => {}
                sent => return sent.map(drop).map_err(io::Error::from),
            }
        }
    }
}

/// The tier of a worker, and the socket that its answers come from.
#[derive(Debug, Clone)]
pub struct WorkerShared {
    /// For the file system.
    pub shared: Arc<Shared>,
    asks: Arc<OwnedFd>,
}

impl WorkerShared {
    /// With the worker's ends of the sockets.
    pub fn new((options, sockets): (SharedOptions, Sockets)) -> Self {
        let asks = Arc::new(sockets.asks);
        let link = SocketLink { asks: Arc::clone(&asks), offers: sockets.offers };
        Self { shared: Arc::new(Shared::new(Box::new(link), options)), asks }
    }

    /// Passes answers on until the supervisor is gone. The body of a thread.
    pub fn receive(&self) {
        let mut buffer = vec![0; MESSAGE];
        loop {
            match recv(&*self.asks, &mut buffer[..], RecvFlags::empty()) {
                Err(Errno::INTR) => {}
                Ok((len, _)) if len > 0 => self.shared.reply(buffer.get(..len).unwrap_or_default()),
                _ => return,
            }
        }
    }
}

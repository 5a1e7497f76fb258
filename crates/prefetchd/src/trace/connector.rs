//! The kernel's process events by netlink (CONFIG_PROC_EVENTS; CAP_NET_ADMIN in the first namespaces).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::netlink::{CONNECTOR, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with, sockopt,
};

use super::proc_event::{self, GROUP, ProcEvent};
use super::way::Refused;

const TRIED: &str = "listen to the kernel's process events (netlink connector)";
/// Room for events between two reads: about a thousand, as the kernel counts them.
const BUFFER_BYTES: usize = 1 << 20;
/// Time that the kernel takes to answer the request, at most.
const ANSWER: Duration = Duration::from_secs(1);

/// A socket that hears of all processes.
#[derive(Debug)]
pub struct Connector {
    socket: OwnedFd,
}

/// What was heard.
#[derive(Debug, Default)]
pub struct Heard {
    /// Events, in their order.
    pub events: Vec<ProcEvent>,
    /// Was there no room for some?
    pub has_lost: bool,
}

impl Connector {
    /// Begins to listen.
    ///
    /// # Errors
    /// What the kernel answered; also if it does not answer: without the first namespaces it is silent.
    pub fn start() -> Result<Self, Refused> {
        let refused = |e: Errno| Refused::new(TRIED, std::io::Error::from(e));
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(CONNECTOR))
            .map_err(refused)?;
        _ = sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES);
        bind(&socket, &SocketAddrNetlink::new(0, GROUP)).map_err(refused)?;
        send(&socket, &proc_event::request(), SendFlags::empty()).map_err(refused)?;
        let connector = Self { socket };
        connector.wait(ANSWER);
        // the answer to the request is a message too, of no process
        let mut message = [0; 128];
        match recv(&connector.socket, &mut message, RecvFlags::PEEK) {
            Ok(_) => Ok(connector),
            Err(Errno::AGAIN) => {
                Err(Refused::new(TRIED, "the kernel does not answer (no CONFIG_PROC_EVENTS, or a container)"))
            }
            Err(e) => Err(refused(e)),
        }
    }

    /// Waits for an event, at most so long.
    pub fn wait(&self, at_most: Duration) {
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
        // an interrupted wait is a wait that ended
        _ = poll(&mut fds, Timespec::try_from(at_most).ok().as_ref());
    }

    /// What was heard since the last time, at most as much as the buffer holds.
    pub fn read(&self) -> Heard {
        let mut heard = Heard::default();
        let mut message = [0; 1024];
        for _ in 0..BUFFER_BYTES / 128 {
            match recv(&self.socket, &mut message, RecvFlags::empty()) {
                Ok((got, _)) => heard.events.extend(message.get(..got).and_then(proc_event::decode)),
                Err(Errno::NOBUFS) => heard.has_lost = true,
                Err(_) => break,
            }
        }
        heard
    }
}

impl AsFd for Connector {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

//! The kernel's process events over netlink (CONFIG_PROC_EVENTS; needs CAP_NET_ADMIN in the initial namespaces).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::netlink::{CONNECTOR, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with, sockopt,
};

use super::method::TraceError;
use super::proc_event::{self, GROUP, ProcEvent};

const TRIED: &str = "listen to the kernel's process events (netlink connector)";
/// Room for about a thousand events between two reads, by the kernel's accounting.
const BUFFER_BYTES: usize = 1 << 20;
/// The longest time for the kernel's answer to the request.
const ANSWER: Duration = Duration::from_secs(1);

/// A socket that receives the events of all processes.
#[derive(Debug)]
pub struct Connector {
    socket: OwnedFd,
}

/// The result of a read.
#[derive(Debug, Default)]
pub struct ReadEvents {
    /// Events in order.
    pub events: Vec<ProcEvent>,
    /// Whether events were lost for lack of room.
    pub has_lost: bool,
}

impl Connector {
    /// Subscribes to the events.
    ///
    /// # Errors
    /// The kernel's answer, or its silence: outside of the initial namespaces it does not answer.
    pub fn start() -> Result<Self, TraceError> {
        let refused = |e: Errno| TraceError::new(TRIED, std::io::Error::from(e));
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(CONNECTOR))
            .map_err(refused)?;
        _ = sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES);
        bind(&socket, &SocketAddrNetlink::new(0, GROUP)).map_err(refused)?;
        send(&socket, &proc_event::request(), SendFlags::empty()).map_err(refused)?;
        let connector = Self { socket };
        connector.wait(ANSWER);
        // the answer to the request is a message without a process
        let mut message = [0; 128];
        match recv(&connector.socket, &mut message, RecvFlags::PEEK) {
            Ok(_) => Ok(connector),
            Err(Errno::AGAIN) => Err(TraceError::new(
                TRIED,
                "the kernel does not answer (no CONFIG_PROC_EVENTS, or a container)",
            )),
            Err(e) => Err(refused(e)),
        }
    }

    /// Waits for an event, for at most `at_most`.
    pub fn wait(&self, at_most: Duration) {
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
        // an interrupted wait simply ends
        _ = poll(&mut fds, Timespec::try_from(at_most).ok().as_ref());
    }

    /// The events since the last call, at most a full buffer.
    pub fn read(&self) -> ReadEvents {
        let mut read = ReadEvents::default();
        let mut message = [0; 1024];
        for _ in 0..BUFFER_BYTES / 128 {
            match recv(&self.socket, &mut message, RecvFlags::empty()) {
                Ok((got, _)) => read.events.extend(message.get(..got).and_then(proc_event::decode)),
                Err(Errno::NOBUFS) => read.has_lost = true,
                Err(_) => break,
            }
        }
        read
    }
}

impl AsFd for Connector {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

//! Blocks for the engine.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use eke_cache_shared::frame::{MESSAGE, OfferedBlock};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::connect::{Connection, Connector};
use crate::state::State;

/// Threads: while one waits for a node that does not answer, others go on.
const THREADS: usize = 2;

/// The most bytes in one request.
const AT_ONCE: usize = 512 << 10;

/// Seconds after which the engine forgets a block: versions that are gone are never asked for again.
const FORGET_S: u64 = 7 * 86_400;

/// Between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(500);

/// Starts the threads.
///
/// # Errors
/// No thread can be started.
pub fn start(connector: &Arc<Connector>, state: &Arc<State>, socket: OwnedFd) -> io::Result<()> {
    let socket = Arc::new(socket);
    for _ in 0..THREADS {
        let (connector, state, socket) = (Arc::clone(connector), Arc::clone(state), Arc::clone(&socket));
        std::thread::Builder::new().name("offers".into()).spawn(move || pass(&connector, &state, &socket))?;
    }
    Ok(())
}

fn pass(connector: &Connector, state: &State, socket: &OwnedFd) {
    let (mut connection, mut tried, mut buffer) = (None, None::<Instant>, vec![0; MESSAGE]);
    while let Some(commands) = receive(socket, &mut buffer) {
        if connection.is_none() && tried.is_none_or(|at| at.elapsed() >= PAUSE) {
            tried = Some(Instant::now());
            connection = connector.connect().map_err(|e| state.failed(&e)).ok();
        }
        let Some(open) = &mut connection else { continue };
        if let Err(e) = Connection::query(open, &commands) {
            // "No room" and the like: the connection is good.
            let is_broken = e.is_io_error() || e.is_connection_dropped() || e.is_timeout();
            state.failed(&e);
            if is_broken {
                connection = None;
            }
        }
    }
}

/// All blocks that wait, at least one. `None`: the worker's end of the socket is closed.
fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> Option<Vec<redis::Cmd>> {
    let (mut commands, mut bytes) = (Vec::new(), 0);
    loop {
        let flags = if commands.is_empty() { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
        let len = match recv(socket, &mut *buffer, flags) {
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => return Some(commands),
            Ok((0, _)) | Err(_) => return None,
            Ok((len, _)) => len,
        };
        if let Some(offer) = buffer.get(..len).and_then(OfferedBlock::decode) {
            let mut command = redis::cmd("SET");
            command.arg(offer.key.text()).arg(offer.value).arg("EX").arg(FORGET_S);
            commands.push(command);
            bytes += len;
        }
        if bytes >= AT_ONCE {
            return Some(commands);
        }
    }
}

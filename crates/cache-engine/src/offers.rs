//! Blocks for the engine.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use eke_cache_shared::frame::{MESSAGE, OfferedBlock};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::connect::Connector;
use crate::line::Line;
use crate::state::State;

/// Threads: while one waits for a node that does not answer, others go on.
const THREADS: usize = 2;

/// The most bytes in one request.
const AT_ONCE: usize = 512 << 10;

/// Seconds after which the engine forgets a block: versions that are gone are never asked for again.
const FORGET_S: u64 = 7 * 86_400;

/// Starts the threads.
///
/// # Errors
/// No thread can be started.
pub fn start(connector: &Arc<Connector>, state: &Arc<State>, socket: OwnedFd) -> io::Result<()> {
    let socket = Arc::new(socket);
    for _ in 0..THREADS {
        let (line, state, socket) = (Line::new(connector), Arc::clone(state), Arc::clone(&socket));
        std::thread::Builder::new().name("offers".into()).spawn(move || pass(line, &state, &socket))?;
    }
    Ok(())
}

fn pass(mut line: Line, state: &State, socket: &OwnedFd) {
    let mut buffer = vec![0; MESSAGE];
    while let Some(commands) = receive(socket, &mut buffer) {
        if let Some(Err(e)) = line.connect() {
            state.failed(&e);
        }
        let mut refusal = None;
        let outcome = line.query(&commands, |answer| refusal = answer.err().or(refusal.take()));
        if let Some(Err(e)) = outcome {
            state.failed(&e);
        }
        // "No room" and the like: the connection is good. A replica was the master before.
        if let Some(e) = refusal {
            state.failed(&e);
            if e.code() == Some("READONLY") {
                line.drop_connection();
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

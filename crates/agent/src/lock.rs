//! The lock that allows one agent per machine.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use eke_apply::lock::{self, Lock, LockError};
use eke_linux::Root;
use eke_model::snapshot::Request;

use crate::error::{Error, Result};
use crate::socket;

/// The lock file. It contains the agent's pid and stays when the agent exits.
pub const FILE: &str = "run/eke/agent.lock";

/// Takes the lock and writes `pid` into it.
///
/// # Errors
/// `AlreadyRuns` with the other agent's pid; the kernel's answer if `run/eke` cannot be created (not root).
pub fn take(root: &Root, pid: u32) -> Result<Lock> {
    lock::take(root, &root.path(FILE), 0o755, pid).map_err(|refused| match refused {
        LockError::Held { pid } => Error::AlreadyRuns { pid },
        LockError::Kernel(e) => Error::Kernel(e),
    })
}

/// How often an agent that was asked to stop is looked for, and the pause between two looks.
const LOOKS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(100);

/// The same, but asks an agent that runs already to stop, and waits ten seconds for its end. What is applied stays in place.
///
/// # Errors
/// As [`take`]; the other agent did not stop.
pub fn take_over(root: &Root, pid: u32) -> Result<Lock> {
    let mut taken = take(root, pid);
    if let Err(Error::AlreadyRuns { pid }) = &taken {
        tracing::info!("An agent runs already (process {pid}); this one takes over.");
    }
    let mut is_asked = false;
    for _ in 0..LOOKS {
        if !matches!(taken, Err(Error::AlreadyRuns { .. })) {
            break;
        }
        // Fails while the other does not listen: it has just begun, or is about to end.
        is_asked = is_asked || ask_to_stop(root).is_ok();
        root.sleep(PAUSE);
        taken = take(root, pid);
    }
    taken
}

fn ask_to_stop(root: &Root) -> std::io::Result<()> {
    let mut agent = UnixStream::connect(root.path(socket::FILE_OF_ROOT))?;
    agent.set_read_timeout(Some(PAUSE))?;
    let line = serde_json::to_string(&Request::Stop).map_err(std::io::Error::other)?;
    writeln!(agent, "{line}")?;
    // its answer, or its end
    agent.read(&mut [0; 256]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_agent_names_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let first = take(&root, 4711).unwrap();
        let message = take(&root, 4712).unwrap_err().to_string();
        assert!(message.starts_with("an agent runs already (process 4711)"), "{message}");
        drop(first);
        take(&root, 4712).unwrap();
    }
}

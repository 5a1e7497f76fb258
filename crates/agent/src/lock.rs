//! The lock that allows one agent per machine.

use eke_apply::lock::{self, Lock, LockError};
use eke_linux::Root;

use crate::error::{Error, Result};

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

//! What can go wrong with a guest.

/// Why a run in a guest came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine did not start, did not end, or was interrupted ([`Error::is_interrupted`]).
    #[error(transparent)]
    Machine(#[from] eke_vm::Error),
    /// The programs of the guest cannot be gathered on this machine.
    #[error(transparent)]
    TestImage(#[from] eke_bench_core::test_image::Error),
    /// The peer could not be set up.
    #[error("{peer} cannot be set up in the small machine: {why}")]
    SetUp {
        /// Its name.
        peer: String,
        /// What the guest said.
        why: String,
    },
    /// The script ended with a status that it does not give.
    #[error("the script of {peer} in the small machine ended with status {status}; it said last: {said}")]
    Script {
        /// The peer's name.
        peer: String,
        /// The exit status.
        status: i32,
        /// The end of its output.
        said: String,
    },
    /// The session cannot be said as JSON.
    #[error("the session cannot be told to the small machine: {0}")]
    Session(#[from] serde_json::Error),
    /// A file on the host.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: std::path::PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
}

impl Error {
    /// Did the user ask for the end?
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        matches!(self, Self::Machine(eke_vm::Error::Interrupted))
    }

    /// Is it about one run, so that another may go well?
    #[must_use]
    pub fn is_of_one_run(&self) -> bool {
        let ended =
            |e: &eke_vm::Error| matches!(e, eke_vm::Error::Ended { .. } | eke_vm::Error::TimedOut { .. });
        match self {
            Self::SetUp { .. } | Self::Script { .. } => true,
            Self::Machine(error) => ended(error),
            _ => false,
        }
    }
}

//! Errors of guests.

/// Why a run in a guest failed.
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
        /// The guest's message.
        why: String,
    },
    /// The script ended with an unknown status.
    #[error(
        "the script of {peer} in the small machine ended with status {status}; its last output: {output}"
    )]
    Script {
        /// The peer's name.
        peer: String,
        /// The exit status.
        status: i32,
        /// The end of its output.
        output: String,
    },
    /// The session has no JSON.
    #[error("the session cannot be sent to the small machine: {0}")]
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
    /// Did a signal cause it?
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        matches!(self, Self::Machine(eke_vm::Error::Interrupted))
    }

    /// Does it concern one run only?
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

//! Failures and exit statuses.

use std::error::Error;
use std::io::ErrorKind;
use std::process::ExitCode;

use eke_linux::settings::SettingsError;
use eke_model::config::ConfigError;

use crate::terminal::{self, indented};

/// The exit statuses, as documented in the README.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// 0
    Done,
    /// 1
    Failed,
    /// 2
    Usage,
    /// 3
    NoAgent,
    /// 4
    NotPermitted,
    /// 5
    InPart,
    /// 6
    NotInstalled,
    /// A command's own status (`eke box`).
    Of(u8),
}

impl Status {
    /// The exit code of the process.
    pub fn code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NoAgent => 3,
            Self::NotPermitted => 4,
            Self::InPart => 5,
            Self::NotInstalled => 6,
            Self::Of(status) => status,
        })
    }
}

/// Not anyhow's: with `RUST_BACKTRACE=1` that looks for tables that the packages' programs do not have, and a static one aborts.
type Cause = Box<dyn Error + Send + Sync>;

/// A failure on its way to the user.
#[derive(Debug)]
pub struct Failure {
    status: Status,
    error: Cause,
    hint: Option<String>,
}

/// `Result` of a verb.
pub type Outcome<T = Status> = Result<T, Failure>;

/// The `main` of a program that `eke` executes: runs what the options ask for, and reports a failure. `parsed` is `None` if the user requested
/// the help, and an error if an option is wrong; the error is printed above the help.
pub fn main<A>(
    name: &str,
    usage: &str,
    parsed: Result<Option<A>, impl std::fmt::Display>,
    run: impl FnOnce(A) -> Outcome,
) -> ExitCode {
    match parsed {
        Ok(Some(arguments)) => end(run(arguments)),
        Ok(None) => {
            crate::putln!("{usage}");
            end(Ok(Status::Done))
        }
        Err(wrong) => {
            crate::warn!("{name}: {wrong}\n\n{usage}");
            Status::Usage.code()
        }
    }
}

/// The end of a program: reports a failure, and output that is lost. What succeeded has failed then.
pub fn end(outcome: Outcome) -> ExitCode {
    match (outcome, terminal::lost()) {
        (Ok(done), Some(why)) => {
            let status = if matches!(done, Status::Done | Status::Of(0)) { Status::Failed } else { done };
            Failure::new(status, format!("standard output cannot be written: {why}")).report()
        }
        (Ok(done), None) => done.code(),
        (Err(failure), _) => failure.report(),
    }
}

impl Failure {
    /// A failure with this status.
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, error: message.into().into(), hint: None }
    }

    /// The exit status.
    pub fn status(&self) -> Status {
        self.status
    }

    /// The message without the hint.
    pub fn message(&self) -> String {
        self.error.to_string()
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Prints the message and the hint to standard error; returns the status.
    pub fn report(self) -> ExitCode {
        if is_broken_pipe(&*self.error) {
            return ExitCode::SUCCESS;
        }
        // Each error's sentence includes its cause.
        crate::warn!("eke: {}", indented(&self.error.to_string()));
        if let Some(hint) = &self.hint {
            crate::warn!("hint: {}", indented(hint));
        }
        self.status.code()
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(f)
    }
}

fn is_broken_pipe(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == ErrorKind::BrokenPipe) {
            return true;
        }
        next = error.source();
    }
    false
}

impl From<eke_linux::Error> for Failure {
    fn from(error: eke_linux::Error) -> Self {
        let status = if error.is_permission() { Status::NotPermitted } else { Status::Failed };
        Self { status, error: error.into(), hint: None }
    }
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        match error {
            SettingsError::Unreadable(error) if error.is_permission() => error.into(),
            wrong => Self { status: Status::Usage, error: wrong.into(), hint: None },
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self { status: Status::Usage, error: error.into(), hint: None }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self { status: Status::Failed, error: error.into(), hint: None }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self { status: Status::Failed, error: error.into(), hint: None }
    }
}

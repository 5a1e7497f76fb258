//! What page and metrics share: signals and errors.

use eke_apply::end;
use eke_present::exit::{Failure, Outcome, Status};

/// A descriptor that a signal makes readable.
pub fn signals() -> Outcome<std::os::unix::net::UnixStream> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    Ok(end::signals(&[SIGINT, SIGTERM, SIGHUP])?)
}

/// With its exit status.
pub fn failure(error: eke_dash::Error) -> Failure {
    use eke_dash::Error;
    let denied = |source: &std::io::Error| source.kind() == std::io::ErrorKind::PermissionDenied;
    let status = match &error {
        Error::Listen { source, .. } | Error::File { source, .. } if denied(source) => Status::NotPermitted,
        _ => Status::Failed,
    };
    Failure::new(status, error.to_string())
}

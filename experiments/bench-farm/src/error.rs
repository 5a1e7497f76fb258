//! Why the experiment could not run.

pub use eke_bench_web::error::{Error, Result};

/// The error of a run in which the kernel killed `kills` processes of the nodes for lack of memory: probably the cause.
pub fn with_kills(error: Error, kills: u64) -> Error {
    let and =
        |what: &str| format!("{what}; the kernel killed {kills} processes of the nodes for lack of memory");
    match error {
        _ if kills == 0 => error,
        Error::Client(what) => Error::Client(and(&what)),
        Error::Program { name, what, log } => Error::Program { name, what: and(&what), log },
        Error::Command { command, why } => Error::Command { command, why: and(&why) },
        error => error,
    }
}

/// Whether other runs can go on.
pub fn is_of_one_run(error: &Error) -> bool {
    matches!(
        error,
        // Another mount namespace may have a copy of the origin's mount; the disk goes with it.
        Error::Disk(_) | Error::Program { .. } | Error::Client(_) | Error::Command { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_what_the_kernel_killed() {
        let error = |kills| with_kills(Error::Client("got nothing".to_owned()), kills).to_string();
        assert_eq!(error(0), "a client got nothing");
        assert_eq!(
            error(2),
            "a client got nothing; the kernel killed 2 processes of the nodes for lack of memory"
        );
        assert!(matches!(with_kills(Error::Interrupted, 1), Error::Interrupted));
    }
}

//! Errors of every experiment: a failed operation on a file, a failed command, and a missing program.

use std::io;
use std::path::{Path, PathBuf};
use std::process;

/// An operation on a file, a directory, a mount or a program failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what} {}: {source}{}", path.display(), hint(source))]
pub struct Io {
    /// The operation, as a verb.
    pub what: &'static str,
    /// Its object.
    pub path: PathBuf,
    /// The system's answer.
    pub source: io::Error,
}

/// A command failed.
#[derive(Debug, thiserror::Error)]
#[error("`{command}` {why}")]
pub struct Command {
    /// The command line.
    pub command: String,
    /// What happened, with its standard error.
    pub why: String,
}

impl Command {
    /// `why` goes on after the command line: `did not end within 30 s`.
    pub fn new(command: &process::Command, why: impl Into<String>) -> Self {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        Self { command: words.join(" "), why: why.into() }
    }

    /// It ended without success.
    pub fn ended(command: &process::Command, output: &process::Output) -> Self {
        let stderr = String::from_utf8_lossy(&output.stderr);
        Self::new(command, format!("failed ({}): {}", output.status, stderr.trim()))
    }
}

/// A program that the experiment needs is not installed.
#[derive(Debug, thiserror::Error)]
#[error(
    "{program} is not installed, and {needs} it; `make bench-deps` installs what experiments need (Debian: apt install {package})"
)]
pub struct Missing {
    /// Its name.
    pub program: String,
    /// `the variant "preload" needs`
    pub needs: String,
    /// Debian's package.
    pub package: String,
}

impl Missing {
    /// `needs` is the beginning of a sentence: `the variant "preload" needs`.
    pub fn new(program: &str, needs: impl Into<String>, package: &str) -> Self {
        Self { program: program.to_owned(), needs: needs.into(), package: package.to_owned() }
    }
}

fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => "; this needs root (try with sudo)",
        io::ErrorKind::StorageFull => "; no space is left there",
        _ => "",
    }
}

/// Makes an [`Io`], for `map_err`.
pub fn on<E: Into<io::Error>>(what: &'static str, path: &Path) -> impl FnOnce(E) -> Io {
    move |e| Io { what, path: path.to_owned(), source: e.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_operation_and_the_remedy() {
        let message = |errno: rustix::io::Errno| on("make", "/run/x".as_ref())(errno).to_string();
        assert!(message(rustix::io::Errno::ACCESS).starts_with("cannot make /run/x: "));
        assert!(message(rustix::io::Errno::ACCESS).ends_with("; this needs root (try with sudo)"));
        assert!(message(rustix::io::Errno::NOSPC).ends_with("; no space is left there"));
        assert!(!message(rustix::io::Errno::NOENT).contains(';'));
        assert_eq!(
            Missing::new("nginx", "this experiment needs", "nginx-light").to_string(),
            "nginx is not installed, and this experiment needs it; `make bench-deps` installs what experiments need (Debian: apt install nginx-light)"
        );
    }
}

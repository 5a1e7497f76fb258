//! Executes another program of eke in place of this one, so that signals, terminal and exit status are that program's.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use eke_present::exit::{Failure, Outcome, Status};
use eke_present::programs::{self, NotFound};

use super::Context;

/// A program of its own.
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// Where it comes from, for users who lack it.
    pub from: &'static str,
}

/// The web page and the metrics over HTTP.
pub const DASH: Program = product("eke-dash");
/// Recordings.
pub const RECORD: Program = product("eke-record");
/// LTSP's clients.
pub const LTSP: Program = product("eke-ltsp");
/// Learned programs.
pub const PREFETCH: Program = product("eke-prefetch");
/// The cache of a mount.
pub const CACHE: Program = product("eke-cache");
/// The disks' sensor.
pub const IO: Program = product("eke-io");
/// The laboratory.
pub const BENCH: Program = Program {
    name: "eke-bench",
    from: "the experiments are a package of their own, eke-bench (from source: `make install-bench`)",
};

const fn product(name: &'static str) -> Program {
    Program {
        name,
        from: "it comes with eke, in the same package and directory (from source: `make install`)",
    }
}

impl Program {
    /// Its path.
    ///
    /// # Errors
    /// It is not installed, or another user can replace what root would execute.
    pub fn find(&self) -> Outcome<PathBuf> {
        let name = self.name;
        programs::trusted(name).map_err(|e| match e {
            NotFound::Nowhere => self.missing(),
            NotFound::Writable { .. } => {
                Failure::new(Status::NotPermitted, format!("cannot run {name} as root: {e}"))
            }
        })
    }

    /// It is not installed.
    fn missing(&self) -> Failure {
        Failure::new(Status::NotInstalled, format!("{} is not installed", self.name)).hint(self.from)
    }

    /// A command with the options that all programs share: `--json` and `--root`.
    ///
    /// # Errors
    /// See [`Program::find`].
    pub fn command(&self, context: &Context) -> Outcome<Command> {
        let mut command = Command::new(self.find()?);
        if context.json {
            command.arg("--json");
        }
        if !context.root.is_host() {
            command.arg("--root").arg(context.root.path(""));
        }
        Ok(command)
    }
}

/// Executes the command in place of this process. It returns only if that fails.
pub fn execute(mut command: Command) -> Outcome {
    let error = command.exec();
    let program = command.get_program().to_string_lossy();
    Err(Failure::new(Status::Failed, format!("cannot execute {program}: {error}")))
}

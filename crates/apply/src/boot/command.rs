//! Commands that put changed files into effect, and the search for programs below a root.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::{self, Stdio};

use eke_linux::error::{Error, Result};
use eke_linux::root::Root;
use serde::{Deserialize, Serialize};

/// A command that puts changed files into effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// The program's name and its arguments.
    pub argv: Vec<String>,
    /// What it is for.
    pub why: String,
}

impl Command {
    pub(super) fn new(line: &str, why: &str) -> Self {
        Self { argv: line.split(' ').map(str::to_owned).collect(), why: why.to_owned() }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.argv.join(" "))
    }
}

/// The result of a command.
pub(super) enum Ran {
    /// It ran.
    Yes,
    /// It was only listed, because the root is not the running machine.
    Listed,
}

const PROGRAM_DIRS: [&str; 6] = ["usr/local/sbin", "usr/local/bin", "usr/sbin", "usr/bin", "sbin", "bin"];

/// The path of a program below the root.
pub(super) fn find(root: &Root, program: &str) -> Option<String> {
    let is_file = |path: &String| root.metadata_at(&root.path(path)).is_ok_and(|there| there.is_file());
    PROGRAM_DIRS.iter().map(|dir| format!("{dir}/{program}")).find(is_file)
}

/// Runs a command on the running machine and captures its output.
pub(super) fn run(root: &Root, command: &Command) -> Result<Ran> {
    if !root.is_host() {
        return Ok(Ran::Listed);
    }
    let name = command.argv.first().map_or("", String::as_str);
    let missing =
        || Error::Refused(format!("`{command}` cannot run: {name} is not in {}", PROGRAM_DIRS.join(", ")));
    let program = root.path(find(root, name).ok_or_else(missing)?);
    execute(&program, &command.argv[1..]).map(|()| Ran::Yes).map_err(|source| {
        let arguments = command.argv[1..].join(" ");
        Error::Io { operation: "run", path: program, value: Some(arguments), source }
    })
}

fn execute(program: &Path, arguments: &[String]) -> io::Result<()> {
    let path = PROGRAM_DIRS.map(|dir| format!("/{dir}")).join(":");
    let output = process::Command::new(program)
        .args(arguments)
        .env_clear()
        .envs([("PATH", path.as_str()), ("LC_ALL", "C")])
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let output_text =
        String::from_utf8_lossy(if output.stderr.is_empty() { &output.stdout } else { &output.stderr })
            .trim()
            .to_owned();
    Err(io::Error::other(format!("{}, with the output: {output_text}", output.status)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_program_is_quoted() {
        let error =
            execute(Path::new("/bin/sh"), &["-c".into(), "echo no space >&2; exit 3".into()]).unwrap_err();
        assert_eq!(error.to_string(), "exit status: 3, with the output: no space");
        execute(Path::new("/bin/sh"), &["-c".into(), "true".into()]).unwrap();
    }
}

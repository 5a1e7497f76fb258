//! `eke bench` and `eke prefetch replay`: execute `eke-bench`, which is a package of its own.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use eke_linux::cgroup::name;
use eke_linux::root::RUN_DIR;
use eke_present::exit::Outcome;

use super::Context;
use super::program::{BENCH, execute};

/// Executes `eke-bench VERB WORDS` in place of this process. It returns only if that fails.
pub fn run(context: &Context, verb: &[&str], words: &[OsString]) -> Outcome {
    let mut command = BENCH.command(context)?;
    command.args(verb).args(words);
    execute(command)
}

/// Removes the leftovers of killed experiments. Without leftovers it executes nothing.
///
/// # Errors
/// There are leftovers, and `eke-bench` is not installed or cannot remove them.
pub fn sweep(context: &Context) -> Result<(), String> {
    let left = leftovers(context).map_err(|e| e.to_string())?;
    if left.is_empty() {
        return Ok(());
    }
    let program = BENCH.find().map_err(|e| format!("{} in /{RUN_DIR}: {e}", left.join(", ")))?;
    let mut command = Command::new(&program);
    command.args(["lab", "sweep"]).stdin(Stdio::null()).stdout(Stdio::null());
    let output = command.output().map_err(|e| format!("cannot execute {}: {e}", program.display()))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

/// Directories in `/run/eke` named after a process that has ended.
fn leftovers(context: &Context) -> Result<Vec<String>, eke_linux::Error> {
    let entries = match std::fs::read_dir(context.root.path(RUN_DIR)) {
        Ok(entries) => entries,
        Err(_) => return Ok(Vec::new()),
    };
    let mut left = Vec::new();
    for name in entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()) {
        let Some(owner) = name::owner(&name) else { continue };
        if !name::is_alive(&context.root, owner)? {
            left.push(name);
        }
    }
    Ok(left)
}

//! Applies a plan: changes the files and runs the commands. Undoes both.

use std::io;

use super::OWNER;
use super::command::{Command, Ran, run};
use super::due::{self, After};
use super::new_entries::{self, REASON};
use super::plan::{self, BootPlan};
use super::unmounted;
use crate::files::{self, AppliedFile, Change, Effect, Outcome, Reverted};
use eke_linux::error::{Error, Result};
use eke_linux::root::Root;

/// What was changed and run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Written {
    /// The changed files.
    pub files: Vec<AppliedFile>,
    /// The commands that ran.
    pub ran: Vec<Command>,
    /// The commands that did not run, because the root is not the running machine.
    pub to_run: Vec<Command>,
}

/// What was undone and run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Undone {
    /// The restored files.
    pub files: Vec<Reverted>,
    /// The commands that ran.
    pub ran: Vec<Command>,
    /// The commands that did not run, because the root is not the running machine.
    pub to_run: Vec<Command>,
}

/// Runs a command, or only lists it.
pub(super) type RunCommand<'a> = &'a mut dyn FnMut(&Command) -> Result<Ran>;

/// Makes the plan's changes and runs its commands.
///
/// # Errors
/// A failing command: its name, status and output. The files are then restored.
pub fn write(root: &Root, plan: &BootPlan) -> Result<Written> {
    let reason = format!("{REASON}{}", plan.words.join(" "));
    write_files(root, OWNER, &plan.changes, &plan.commands, &reason, &mut |command| run(root, command))
}

/// Restores the files and runs the same commands again. Entries of kernels that were installed since lose eke's words, too: their paths are the second
/// value.
///
/// # Errors
/// Before any change: a file system with files to restore is not mounted. A failing command; the files are restored by then.
pub fn undo(root: &Root) -> Result<(Undone, Vec<String>)> {
    let _lock = files::lock_to_undo(root)?;
    unmounted::refuse(root)?;
    let cleaned = new_entries::clean(root)?;
    let undone = undo_locked(root, OWNER, &[], &plan::commands_for, &mut |command| run(root, command))?;
    Ok((undone, cleaned))
}

/// Changes files, then runs commands if anything changed, or if an interrupted call left some.
pub(super) fn write_files(
    root: &Root,
    owner: &str,
    changes: &[Change],
    commands: &[Command],
    reason: &str,
    run: RunCommand<'_>,
) -> Result<Written> {
    let _lock = files::lock(root)?;
    write_locked(root, owner, changes, commands, reason, run)
}

/// As [`write_files`]; the caller holds the lock of files.
pub(super) fn write_locked(
    root: &Root,
    owner: &str,
    changes: &[Change],
    commands: &[Command],
    reason: &str,
    run: RunCommand<'_>,
) -> Result<Written> {
    let left = due::left(root, owner, After::Write);
    if left.is_empty() && files::stand(root, owner, changes)? {
        return Ok(Written { files: files::apply(root, owner, changes, reason)?, ..Written::default() });
    }
    let commands = due::with(commands, &left);
    due::set(root, owner, After::Write, &commands)?;
    let written = change_and_run(root, owner, changes, &commands, reason, run);
    // If this cannot be saved, the next call runs the commands once more.
    let _ = due::set(root, owner, After::Write, if written.is_ok() { &[] } else { &left });
    written
}

fn change_and_run(
    root: &Root,
    owner: &str,
    changes: &[Change],
    commands: &[Command],
    reason: &str,
    run: RunCommand<'_>,
) -> Result<Written> {
    let first = files::journal::load(root)?.len();
    let files = files::apply(root, owner, changes, reason)?;
    match perform(commands, run) {
        Ok((ran, to_run)) => Ok(Written { files, ran, to_run }),
        Err(e) if files.iter().all(|f| f.effect == Effect::Unchanged) => Err(e),
        Err(e) => {
            let back = files::revert::since(root, owner, first);
            let words = back.map_or("; not all files could be restored", |_| "; the files were restored");
            Err(with_words(e, words))
        }
    }
}

/// Runs `before`, restores the files, and runs the commands that the restored files need.
pub(super) fn undo_files(
    root: &Root,
    owner: &str,
    before: &[Command],
    after: &dyn Fn(&Root, &[String]) -> Vec<Command>,
    run: RunCommand<'_>,
) -> Result<Undone> {
    let _lock = files::lock_to_undo(root)?;
    undo_locked(root, owner, before, after, run)
}

/// As [`undo_files`]; the caller holds the lock of files.
fn undo_locked(
    root: &Root,
    owner: &str,
    before: &[Command],
    after: &dyn Fn(&Root, &[String]) -> Vec<Command>,
    run: RunCommand<'_>,
) -> Result<Undone> {
    let (mut ran, mut to_run) = perform(before, run)?;
    let left = due::left(root, owner, After::Undo);
    let listed: Vec<String> = files::listed(root, owner)?.into_iter().map(|file| file.path).collect();
    match due::set(root, owner, After::Undo, &due::with(&after(root, &listed), &left)) {
        // A full disk keeps nobody from an undo: the commands only do not run again if it is interrupted.
        Err(Error::Io { source, .. }) if files::lacks_room(source.kind()) => {}
        saved => saved?,
    }
    let files = files::revert(root, owner)?;
    let back = files.iter().filter(|f| !matches!(f.outcome, Outcome::Unchanged)).map(|f| f.path.clone());
    let after = due::with(&after(root, &back.collect::<Vec<_>>()), &left);
    let (ran_after, to_run_after) =
        perform(&after, run).map_err(|e| with_words(e, "; the files are restored"))?;
    let _ = due::set(root, owner, After::Undo, &[]);
    ran.extend(ran_after);
    to_run.extend(to_run_after);
    Ok(Undone { files, ran, to_run })
}

/// Runs more commands after an undo.
pub(super) fn perform_into(undone: &mut Undone, commands: &[Command], run: RunCommand<'_>) -> Result<()> {
    let (ran, to_run) = perform(commands, run)?;
    undone.ran.extend(ran);
    undone.to_run.extend(to_run);
    Ok(())
}

fn perform(commands: &[Command], run: RunCommand<'_>) -> Result<(Vec<Command>, Vec<Command>)> {
    let (mut ran, mut listed) = (Vec::new(), Vec::new());
    for command in commands {
        match run(command)? {
            Ran::Yes => ran.push(command.clone()),
            Ran::Listed => listed.push(command.clone()),
        }
    }
    Ok((ran, listed))
}

fn with_words(error: Error, words: &str) -> Error {
    match error {
        Error::Io { operation, path, value, source } => Error::Io {
            operation,
            path,
            value,
            source: io::Error::new(source.kind(), format!("{source}{words}")),
        },
        other => Error::Refused(format!("{other}{words}")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_failing_command_restores_the_files() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        files::apply(&root, "o", &[Change::text("a", "1")], "r").unwrap();
        let commands = [Command::new("good", "w"), Command::new("bad --now", "w")];
        let mut seen = Vec::new();
        let error = write_files(
            &root,
            "o",
            &[Change::text("a", "2"), Change::text("b/c", "2")],
            &commands,
            "r",
            &mut |c| {
                seen.push(c.to_string());
                match c.argv[0].as_str() {
                    "good" => Ok(Ran::Yes),
                    _ => Err(Error::io("run", Path::new("/bin/bad"), io::Error::other("exit status: 1"))),
                }
            },
        );
        let error = error.unwrap_err().to_string();
        assert_eq!(error, "cannot run /bin/bad: exit status: 1; the files were restored");
        assert_eq!(seen, ["good", "bad --now"]);
        assert_eq!(root.read("a").unwrap(), "1");
        assert!(!root.exists("b"));
    }

    /// Ends a [`killed`] call. Unlike `panic!` it prints nothing, so that what a failed run prints of panics is its failures.
    fn die() -> ! {
        std::panic::resume_unwind(Box::new("killed"))
    }

    /// As `kill -9` while a command runs: nothing after it happens.
    fn killed(call: impl FnOnce() -> Result<()>) {
        let killed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call));
        assert!(killed.is_err());
    }

    #[test]
    fn commands_of_an_interrupted_call_run_at_the_next_one() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let [first, second] = ["first", "second"].map(|line| Command::new(line, "w"));
        let commands = [first, second.clone()];
        let killing = &mut |c: &Command| if *c == second { die() } else { Ok(Ran::Yes) };
        let change = [Change::text("a", "2")];
        killed(|| write_files(&root, "o", &change, &commands, "r", killing).map(drop));
        // The plan of the next call has nothing to do.
        let write = |run: RunCommand<'_>| write_files(&root, "o", &[], &[], "r", run);
        let error = write(&mut |_| Err(Error::Refused("no".into()))).unwrap_err().to_string();
        assert_eq!(error, "no", "no files were restored");
        assert_eq!(write(&mut |_| Ok(Ran::Yes)).unwrap().ran, commands);
        assert_eq!(write(&mut |_| Ok(Ran::Yes)).unwrap().ran, []);
        let after =
            |_: &Root, paths: &[String]| if paths.is_empty() { Vec::new() } else { commands.to_vec() };
        killed(|| undo_files(&root, "o", &[], &after, killing).map(drop));
        assert!(!root.exists("a"));
        let undo = || undo_files(&root, "o", &[], &after, &mut |_| Ok(Ran::Yes)).unwrap().ran;
        assert_eq!((undo(), undo()), (commands.to_vec(), Vec::new()));
        assert_eq!(root.list("var/lib/eke").unwrap(), [""; 0]);
    }

    #[test]
    fn what_is_due_after_a_write_is_not_due_after_its_undo() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let links = [Command::new("update-rc.d eke defaults", "w")];
        let change = [Change::text("a", "2")];
        killed(|| write_files(&root, "o", &change, &links, "r", &mut |_| die()).map(drop));
        let undo = || undo_files(&root, "o", &[], &|_, _| Vec::new(), &mut |_| Ok(Ran::Yes)).unwrap().ran;
        assert_eq!(undo(), []);
        let write = || write_files(&root, "o", &[], &[], "r", &mut |_| Ok(Ran::Yes)).unwrap().ran;
        assert_eq!(write(), []);
    }

    #[test]
    fn nothing_runs_where_nothing_changed() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let write = || {
            let commands = [Command::new("c", "w")];
            write_files(&root, "o", &[Change::text("a", "2")], &commands, "r", &mut |_| Ok(Ran::Yes))
                .unwrap()
                .ran
                .len()
        };
        assert_eq!((write(), write()), (1, 0));
    }
}

//! `eke down`: restores everything, with the agent alive or dead.

use eke_apply::journal::{self, Journal};
use eke_apply::revert::{self, Outcome as Undone};
use eke_apply::{cgroup, script, state};
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::task::Task;
use eke_present::{put, putln};
use eke_sandbox::demo::disk_file;
use eke_swap::retrain;

use super::{Context, applied, laboratory};
use crate::agent::{self, Hung, Stopped};
use crate::documents;

/// The verb.
pub fn run(context: &Context, print: bool) -> Outcome {
    context.need_root("`eke down` restores kernel settings, which needs root")?;
    // In a container with nothing of its own to undo, a package may still be removed. A journal that cannot be read keeps no agent from being stopped.
    if journal::entries(&context.root).map_or(true, |entries| !entries.is_empty()) {
        context.need_machine("down")?;
    }
    if print {
        put!("{}", script::undo(&journal::entries(&context.root)?));
        return Ok(Status::Done);
    }
    let document = everything(context)?;
    context.print(&document, show)?;
    Ok(status(&document))
}

/// Stops the agent and undoes everything.
pub fn everything(context: &Context) -> Outcome<documents::Down> {
    let _task = Task::begin(context.json, "restoring everything", applied::swapped_back(context));
    let mut document = documents::Down::default();
    // First: even if the rest fails, a restarted service applies nothing.
    if let Err(e) = applied::mark_down(context, false) {
        document.blocked.push(format!("the mark that stops a restarted service from applying: {e}"));
    }
    // Without the second mark a service that somebody starts applies nothing until the next boot.
    if agent::stop_service(&context.root) {
        let _ = applied::mark_down(context, true);
    }
    let hung = match agent::stop(&context.root)? {
        Stopped::Gone => None,
        Stopped::Hangs(hung) => Some(hung),
    };
    document.blocked.extend(hung.iter().map(Hung::sentence));
    if let Err(e) = cgroup::sweep(&context.root) {
        document.blocked.push(format!("leftovers of a killed box: {e}"));
    }
    if let Err(e) = laboratory::sweep(context) {
        document.blocked.push(format!("leftovers of a killed experiment: {e}"));
    }
    revert_all(context, hung.as_ref(), &mut document)?;
    super::link::undo_all(context, &mut document);
    disk_file::sweep(&context.root, &disk_file::default_dir());
    state::forget(&context.root, state::APPLIED)?;
    // It tells of devices that are gone, and would delay a training for the next ones.
    state::forget(&context.root, retrain::RECORD)?;
    Ok(document)
}

/// Undoes what is in the journal, except devices in which an agent hangs: removing them would hang too.
fn revert_all(context: &Context, hung: Option<&Hung>, document: &mut documents::Down) -> Outcome<()> {
    let journal = Journal::open(&context.root).map_err(|e| match hung {
        Some(hung) => Failure::from(e).hint(format!(
            "{}; if it holds the lock, nothing can be undone before that; `eke down --print` prints the commands",
            hung.sentence()
        )),
        None => e.into(),
    })?;
    let in_use = |device: &str| {
        let hung = hung.filter(|hung| hung.devices.iter().any(|name| name == device))?;
        Some(format!("process {} hangs in a call to {device}, so removing it would hang too", hung.pid))
    };
    for (entry, outcome) in revert::all_but(&context.root, &journal, in_use)? {
        match outcome {
            Undone::Restored(text) => document.restored.push(text),
            Undone::AsBefore => {}
            Undone::Kept(why) => document.kept.push(why),
            Undone::Blocked(why) => document.blocked.push(format!("{}: {why}", entry.intent.step)),
        }
    }
    Ok(())
}

/// In part if something is to be undone later. What somebody else changed since does not count.
pub fn status(document: &documents::Down) -> Status {
    if document.blocked.is_empty() { Status::Done } else { Status::InPart }
}

/// What was undone and what was not, and last how the machine is now.
pub fn show(document: &documents::Down) {
    for line in &document.restored {
        putln!("{line}");
    }
    for line in &document.kept {
        putln!("left alone: {line}");
    }
    for line in &document.blocked {
        putln!("not yet undone: {line}");
    }
    match (document.restored.len() + document.kept.len(), document.blocked.len()) {
        (0, 0) => putln!("Nothing to undo: eke has changed nothing on this machine."),
        (_, 0) if document.kept.is_empty() => putln!("Everything is as it was before eke."),
        (_, 0) => putln!("Everything else is as it was before eke."),
        _ => putln!("Done in part. Run `eke down` for the rest."),
    }
}

//! `eke down`: everything back, with the agent alive or dead.

use eke_apply::journal::{self, Journal};
use eke_apply::revert::{self, Outcome as Undone};
use eke_apply::{cgroup, script, state};
use eke_linux::read;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::task::{Far, Task};
use eke_present::{put, say};
use eke_sandbox::demo::disk_file;

use super::{Context, laboratory, up};
use crate::agent::{self, Hung, Stopped};
use crate::documents;

/// The verb.
pub fn run(context: &Context, print: bool) -> Outcome {
    context.need_root("`eke down` puts kernel settings back, which needs root")?;
    if print {
        put!("{}", script::undo(&journal::entries(&context.root)?));
        return Ok(Status::Done);
    }
    let document = everything(context)?;
    context.print(&document, show)?;
    Ok(if document.blocked.is_empty() { Status::Done } else { Status::InPart })
}

/// Stops the agent and undoes everything.
pub fn everything(context: &Context) -> Outcome<documents::Down> {
    let _task = Task::begin(context.json, "putting everything back", swapped_back(context));
    let mut document = documents::Down::default();
    // First of all: whatever becomes of the rest, a service that is started again applies nothing.
    if let Err(e) = state::save(&context.root, up::DOWN_MARK, &()) {
        document.blocked.push(format!("the mark that keeps a service from applying again: {e}"));
    }
    let hung = match agent::stop(&context.root)? {
        Stopped::Gone => None,
        Stopped::Hangs(hung) => Some(hung),
    };
    document.blocked.extend(hung.iter().map(Hung::sentence));
    if let Err(e) = cgroup::sweep(&context.root) {
        document.blocked.push(format!("what a killed box left: {e}"));
    }
    if let Err(e) = laboratory::sweep(context) {
        document.blocked.push(format!("what a killed experiment left: {e}"));
    }
    revert_all(context, hung.as_ref(), &mut document)?;
    super::link::undo_all(context, &mut document);
    disk_file::sweep(&context.root, &disk_file::default_dir());
    state::forget(&context.root, state::APPLIED)?;
    Ok(document)
}

/// Undoes what is in the journal. What hangs in a device would make its removal hang, too.
fn revert_all(context: &Context, hung: Option<&Hung>, document: &mut documents::Down) -> Outcome<()> {
    let journal = Journal::open(&context.root).map_err(|e| match hung {
        Some(hung) => Failure::from(e).hint(format!(
            "{}; if it has the lock, nothing is undone before that; `eke down --print` shows the commands",
            hung.sentence()
        )),
        None => e.into(),
    })?;
    let in_use = |device: &str| {
        let hung = hung.filter(|hung| hung.devices.iter().any(|name| name == device))?;
        Some(format!("process {} hangs in a call to {device}, and its removal would hang, too", hung.pid))
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

/// Swapping off is what takes long: how much of what eke's areas held is back in memory.
pub fn swapped_back(context: &Context) -> Far {
    let root = context.root.clone();
    let made: Vec<String> =
        journal::entries(&root).unwrap_or_default().into_iter().filter_map(|e| e.made).collect();
    let held = move || {
        let areas = read::swaps(&root).unwrap_or_default();
        areas
            .iter()
            .filter(|a| made.iter().any(|m| a.device.as_ref() == Some(m)))
            .map(|a| a.used.0)
            .sum::<u64>()
    };
    let whole = held();
    Box::new(move |_| (whole > 0).then(|| (whole.saturating_sub(held()), whole)))
}

fn show(document: &documents::Down) {
    for line in &document.restored {
        say!("{line}");
    }
    for line in &document.kept {
        say!("left alone: {line}");
    }
    for line in &document.blocked {
        say!("not yet undone: {line}");
    }
    match (document.restored.len() + document.kept.len(), document.blocked.len()) {
        (0, 0) => say!("Nothing to undo: eke has changed nothing on this machine."),
        (_, 0) => say!("Everything is as it was before eke."),
        _ => say!("Done in part. `eke down` again tries the rest again."),
    }
}

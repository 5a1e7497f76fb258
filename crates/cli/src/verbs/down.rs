//! `eke down`: everything back, with the agent alive or dead.

use eke_bench::stage;
use eke_kernel::journal::{self, Journal};
use eke_kernel::revert::{self, Outcome as Undone};
use eke_kernel::{cgroup, read, state};
use eke_lab::demo::disk_file;

use super::{Context, up};
use crate::agent;
use crate::documents;
use crate::exit::{Outcome, Status};
use crate::show::task::{Far, Task};
use crate::{put, say};

/// The verb.
pub fn run(context: &Context, print: bool) -> Outcome {
    context.need_root("`eke down` puts kernel settings back, which needs root")?;
    if print {
        put!("{}", revert::as_shell(&journal::entries(&context.root)?));
        return Ok(Status::Done);
    }
    let document = everything(context)?;
    context.print(&document, show)?;
    Ok(if document.blocked.is_empty() { Status::Done } else { Status::InPart })
}

/// Stops the agent and undoes everything.
pub fn everything(context: &Context) -> Outcome<documents::Down> {
    let _task = Task::begin(context.json, "putting everything back", swapped_back(context));
    agent::stop(&context.root)?;
    let mut document = documents::Down::default();
    if let Err(e) = cgroup::sweep(&context.root) {
        document.blocked.push(format!("what a killed box left: {e}"));
    }
    if let Err(e) = stage::sweep(&context.root) {
        document.blocked.push(format!("what a killed experiment left: {e}"));
    }
    let journal = Journal::open(&context.root)?;
    for (entry, outcome) in revert::all(&context.root, &journal)? {
        match outcome {
            Undone::Restored(text) => document.restored.push(text),
            Undone::AsBefore => {}
            Undone::Kept(why) => document.kept.push(why),
            Undone::Blocked(why) => document.blocked.push(format!("{}: {why}", entry.intent.step)),
        }
    }
    super::link::undo_all(context, &mut document);
    disk_file::sweep(&context.root, &disk_file::default_dir());
    state::save(&context.root, up::DOWN_MARK, &())?;
    state::forget(&context.root, state::APPLIED)?;
    Ok(document)
}

/// Swapping off is what takes long: how much of what eke's areas held is back in memory.
pub fn swapped_back(context: &Context) -> Far {
    let root = context.root.clone();
    let made: Vec<String> =
        journal::entries(&root).unwrap_or_default().into_iter().filter_map(|e| e.made).collect();
    let held = move || {
        let areas = read::swaps(&root).unwrap_or_default();
        areas.iter().filter(|a| made.iter().any(|m| is_of(&a.path, m))).map(|a| a.used.0).sum::<u64>()
    };
    let whole = held();
    Box::new(move |_| (whole > 0).then(|| (whole.saturating_sub(held()), whole)))
}

/// A device in the journal is a name or a path.
fn is_of(area: &str, made: &str) -> bool {
    area == made || area.strip_prefix("/dev/") == Some(made)
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

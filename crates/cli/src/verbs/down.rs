//! `eke down`: everything back, with the agent alive or dead.

use eke_kernel::journal::{self, Journal};
use eke_kernel::revert::{self, Outcome as Undone};
use eke_kernel::{cgroup, state};
use eke_lab::demo::disk_file;

use super::Context;
use crate::agent;
use crate::documents;
use crate::exit::{Outcome, Status};

/// The verb.
pub fn run(context: &Context, print: bool) -> Outcome {
    context.need_root("`eke down` puts kernel settings back, which needs root")?;
    if print {
        print!("{}", revert::as_shell(&journal::entries(&context.root)?));
        return Ok(Status::Done);
    }
    let document = everything(context)?;
    context.print(&document, show)?;
    Ok(if document.blocked.is_empty() { Status::Done } else { Status::InPart })
}

/// Stops the agent and undoes everything.
pub fn everything(context: &Context) -> Outcome<documents::Down> {
    agent::stop(&context.root)?;
    cgroup::sweep(&context.root)?;
    let mut document = documents::Down::default();
    let journal = Journal::open(&context.root)?;
    for (entry, outcome) in revert::all(&context.root, &journal)? {
        match outcome {
            Undone::Restored(text) => document.restored.push(text),
            Undone::AsBefore => {}
            Undone::Kept(why) => document.kept.push(why),
            Undone::Blocked(why) => document.blocked.push(format!("{}: {why}", entry.intent.step)),
        }
    }
    disk_file::sweep(&context.root, &disk_file::default_dir());
    if document.blocked.is_empty() {
        state::forget(&context.root, state::APPLIED)?;
    }
    Ok(document)
}

fn show(document: &documents::Down) {
    for line in &document.restored {
        println!("{line}");
    }
    for line in &document.kept {
        println!("left alone: {line}");
    }
    for line in &document.blocked {
        println!("not yet undone: {line}");
    }
    match (document.restored.len() + document.kept.len(), document.blocked.len()) {
        (0, 0) => println!("Nothing to undo: eke has changed nothing on this machine."),
        (_, 0) => println!("Everything is as it was before eke."),
        _ => println!("Done in part. `eke down` again tries the rest again."),
    }
}

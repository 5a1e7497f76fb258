//! Lines about changed files, and about the commands that put them into effect.

use eke_apply::boot::{Undone, Written};
use eke_apply::files::{Effect, Outcome};
use eke_present::putln;

/// After a change.
pub fn show_written(written: &Written) {
    for file in &written.files {
        let what = match file.effect {
            Effect::Created => "wrote",
            Effect::Changed => "changed",
            Effect::Removed => "removed",
            Effect::Unchanged => "unchanged",
        };
        putln!("{what} /{}", file.path);
    }
    for command in &written.ran {
        putln!("ran {command} ({})", command.why);
    }
    for command in &written.to_run {
        putln!("to run on that system: {command} ({})", command.why);
    }
}

/// After an undo.
pub fn show_undone(undone: &Undone) {
    for file in &undone.files {
        match &file.outcome {
            Outcome::Restored => putln!("/{} is as it was", file.path),
            Outcome::Removed => putln!("removed /{}", file.path),
            Outcome::Kept(why) => putln!("left alone: /{}: {why}", file.path),
            Outcome::Unchanged => {}
        }
    }
    for command in &undone.ran {
        putln!("ran {command} ({})", command.why);
    }
    for command in &undone.to_run {
        putln!("to run on that system: {command} ({})", command.why);
    }
}

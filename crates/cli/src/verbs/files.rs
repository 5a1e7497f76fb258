//! Lines about changed files and the commands that make them count.

use eke_apply::boot::{Undone, Written};
use eke_apply::files::{Effect, Outcome};
use eke_present::say;

/// After changing.
pub fn show_written(written: &Written) {
    for file in &written.files {
        let what = match file.effect {
            Effect::Created => "wrote",
            Effect::Changed => "changed",
            Effect::Removed => "removed",
            Effect::Unchanged => "unchanged",
        };
        say!("{what} /{}", file.path);
    }
    for command in &written.ran {
        say!("ran {command} ({})", command.why);
    }
    for command in &written.to_run {
        say!("to run there: {command} ({})", command.why);
    }
}

/// After putting back.
pub fn show_undone(undone: &Undone) {
    for file in &undone.files {
        match &file.outcome {
            Outcome::Restored => say!("/{} is as it was", file.path),
            Outcome::Removed => say!("removed /{}", file.path),
            Outcome::Kept(why) => say!("left alone: /{}: {why}", file.path),
            Outcome::Unchanged => {}
        }
    }
    for command in &undone.ran {
        say!("ran {command} ({})", command.why);
    }
    for command in &undone.to_run {
        say!("to run there: {command} ({})", command.why);
    }
}

//! The undo of the journal as a shell script, simpler than [`crate::revert`]. Names chosen by users (groups, files) are quoted in it, because root runs it.

use std::fmt::Write as _;

use crate::journal::record::Undo;
use crate::journal::replay::Entry;
use crate::knob;
use crate::zram::kept_dictionary;
use eke_linux::zram;
use eke_model::shell::{quoted, word};

const HEAD: &str = "#!/bin/sh\n\
    # Undoes eke's changes of kernel settings and swap, the newest first. Run it as root, without eke's agent.\n\
    # Unlike `eke down` it overwrites later changes, does not check free memory, and leaves files of `eke link` alone.\n";

/// The undo of all changes in force, newest first.
pub fn undo(entries: &[Entry]) -> String {
    let mut out = String::from(HEAD);
    for entry in entries.iter().rev() {
        let _ = writeln!(out, "# undo of: {}", one_line(&entry.intent.step.to_string()));
        out += &lines(entry);
    }
    out
}

/// The commands that undo one change.
pub fn lines(entry: &Entry) -> String {
    match &entry.intent.undo {
        Undo::Write { knob, target, old, beside, .. } => {
            let beside = beside.iter().map(|(knob, was)| write_back(knob, target, was));
            write_back(knob, target, old) + &beside.collect::<String>()
        }
        Undo::UnloadModule { name } => format!("modprobe -r {}\n", quoted(name)),
        Undo::RemoveZram { expected, .. } => remove(entry.made.as_ref().unwrap_or(expected)),
        Undo::SwapOff { path } => format!("swapoff {}\n", quoted(path)),
        Undo::SwapOn { path, priority, discard } => {
            let priority = priority.map_or(String::new(), |p| format!("-p {p} "));
            let discard = discard.map_or(String::new(), |d| format!("{} ", d.option()));
            format!("swapon {priority}{discard}{}\n", quoted(path))
        }
        Undo::Continue { processes } => processes.iter().map(|p| format!("kill -CONT {}\n", p.pid)).collect(),
        Undo::Nothing => String::new(),
    }
}

fn write_back(name: &str, target: &str, value: &str) -> String {
    if value == "0" && knob::find(name).is_some_and(|k| k.yields_at_zero) {
        return String::new();
    }
    let path = knob::find(name).and_then(|k| k.path_for(target));
    path.map_or(String::new(), |path| format!("echo {} > {}\n", quoted(value), word(&format!("/{path}"))))
}

/// Removes a zram device. A device that is still swap refuses the reset with EBUSY, whatever path `/proc/swaps` shows
/// for it. The copy of its dictionary goes with it.
fn remove(name: &str) -> String {
    let number = zram::number(name).unwrap_or_default();
    let reset = format!("/sys/block/{name}/reset");
    let dictionary = kept_dictionary(name);
    format!(
        "if [ -e {reset} ]; then\n  \
           {{ echo 1 2>/dev/null > {reset} || {{ swapoff /dev/{name} && echo 1 > {reset}; }}; }} &&\n    \
           echo {number} > /sys/class/zram-control/hot_remove\nfi\n\
         [ -e {reset} ] || rm -f /{dictionary}\n"
    )
}

/// A comment must end with its line.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use eke_model::step::Step;

    use crate::journal::record::Intent;

    use super::*;

    fn entry(step: Step, undo: Undo) -> Entry {
        let intent = Intent { owner: "swap".into(), step, undo, reason: String::new(), made_by: None };
        Entry { seq: 1, intent, made: None, done: true, draining: false }
    }

    #[test]
    fn names_chosen_by_users_are_never_commands() {
        let dir = tempfile::tempdir().unwrap();
        let harm = dir.path().join("harm");
        let name = format!("a'; touch {0}; '\n touch {0}\n$(touch {0})`touch {0}`", harm.display());
        let undo = Undo::Write {
            knob: "memory.swappiness".into(),
            target: name.clone(),
            old: "60".into(),
            new: "180".into(),
            had_it: Vec::new(),
            beside: Vec::new(),
        };
        let script = super::undo(&[
            entry(Step::set_at("memory.swappiness", &name, 180), undo),
            entry(Step::SwapOn { path: name.clone(), priority: None }, Undo::SwapOff { path: name.clone() }),
        ]);
        let sh = std::process::Command::new("sh").args(["-c", &script]).output();
        assert!(sh.unwrap().stdout.is_empty() && !harm.exists(), "{script}");
        assert!(script.contains("'\\''; touch"), "{script}");
    }
}

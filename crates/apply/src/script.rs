//! The undo of the journal as a shell script, simpler than [`crate::revert`]. Names chosen by users (groups, files) are quoted in it, because root runs it.

use std::fmt::Write as _;

use crate::journal::record::Undo;
use crate::journal::replay::Entry;
use crate::knob;
use crate::zram::kept_dictionary;
use eke_linux::zram;
use eke_model::shell::{quoted, word};
use eke_model::step::Step;
use eke_model::units::PageSize;

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
        Undo::RemoveZram { expected, .. } => remove(entry, expected),
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

/// Removes a zram device if it is still eke's. A device that is still swap refuses the reset with EBUSY, whatever path
/// `/proc/swaps` shows for it. The copy of its dictionary goes with it.
fn remove(entry: &Entry, expected: &str) -> String {
    let name = entry.made.as_deref().unwrap_or(expected);
    let number = zram::number(name).unwrap_or_default();
    let device = format!("/sys/block/{name}");
    let dictionary = kept_dictionary(name);
    let is_ours = is_ours(entry);
    format!(
        "if [ -e {device}/reset ]; then\n  \
           size=$(cat {device}/disksize)\n  \
           if {is_ours}; then\n    \
             {{ echo 1 2>/dev/null > {device}/reset || {{ swapoff /dev/{name} && echo 1 > {device}/reset; }}; }} &&\n      \
             echo {number} > /sys/class/zram-control/hot_remove\n  \
           else\n    \
             echo \"{name} has $size bytes, which eke did not set, and stays: it is another program's\" >&2\n  \
           fi\nfi\n\
         [ -e {device}/reset ] || rm -f /{dictionary}\n"
    )
}

/// The condition for a device of this `$size`, as in [`crate::revert`]: none yet, or the one that eke set, which the kernel rounds up to whole pages.
/// A device whose name was not recorded never had one.
fn is_ours(entry: &Entry) -> String {
    let none = "[ \"$size\" = 0 ]";
    match &entry.intent.step {
        Step::AddZram(spec) if entry.made.is_some() => {
            let (from, end) = (spec.disksize.0, spec.disksize.0.saturating_add(PageSize::LARGEST.bytes()));
            format!("{none} || {{ [ \"$size\" -ge {from} ] && [ \"$size\" -lt {end} ]; }}")
        }
        _ => none.into(),
    }
}

/// A comment must end with its line.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use eke_model::step::ZramSpec;
    use eke_model::units::Bytes;
    use eke_testkit::tree::put;

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

    /// Whether the script removes `zram1`, of this size; eke made it with 100,000 bytes, if its name was recorded.
    fn removes(disksize: u64, is_recorded: bool) -> bool {
        let dir = tempfile::tempdir().unwrap();
        let removal = "sys/class/zram-control/hot_remove";
        put(dir.path(), "sys/block/zram1/disksize", &format!("{disksize}\n"));
        put(dir.path(), "sys/block/zram1/reset", "");
        put(dir.path(), removal, "");
        let spec = ZramSpec::new("zstd", Bytes(100_000));
        let undo = Undo::RemoveZram { before: Vec::new(), expected: "zram1".into() };
        let made = is_recorded.then(|| "zram1".to_owned());
        let entry = Entry { made, ..entry(Step::AddZram(spec), undo) };
        let script = super::undo(&[entry]).replace("/sys/", &format!("{}/sys/", dir.path().display()));
        let ran = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        let is_removed = std::fs::read_to_string(dir.path().join(removal)).unwrap() == "1\n";
        assert_eq!(ran.stderr.is_empty(), is_removed, "{script}\n{ran:?}");
        is_removed
    }

    #[test]
    fn a_device_that_another_program_made_by_that_number_stays() {
        for (disksize, is_recorded, expected) in [
            (0, true, true),
            (102_400, true, true),
            (131_072, true, true),
            (98_304, true, false),
            (1 << 30, true, false),
            (0, false, true),
            (102_400, false, false),
        ] {
            assert_eq!(removes(disksize, is_recorded), expected, "{disksize} {is_recorded}");
        }
    }
}

//! `plan`, `install` and `uninstall`: eke in the clients' boot.

use eke_apply::boot::command::Command as Ran;
use eke_apply::boot::ltsp::{self, LtspPlan, REASON, SCRIPT};
use eke_apply::boot::{Undone, Written};
use eke_apply::files::{Content, Outcome as Reverted};
use eke_linux::Root;
use eke_ltsp::documents::{Command, Done, Plan, PlannedFile};
use eke_model::text::one_line;
use eke_present::document::print;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::putln;

use super::server::{Conf, conf};

const WANTS: &str = "etc/systemd/system/multi-user.target.wants";
const ENABLED: &str = "eke.service is enabled on this server: clients of an image that is made of it start eke with this server's settings, unless the script is in their boot";
const KEPT: &str = "images that `ltsp image` made since `eke ltsp install` keep the script, because a client's initrd removes nothing from them: make them anew by `ltsp image`";
const STILL_ON: &str = "until then the lines with EKE in /etc/ltsp/ltsp.conf count for clients of these images: remove the lines and run `ltsp initrd`, and eke is off there too";
const IN_IMAGE: &str = "the clients' image must have the package eke: install it where the image is made, then run `ltsp image` there; where it is missing, a client says so and boots without eke";

/// Shows every file and line.
pub fn plan(root: &Root, json: bool) -> Outcome {
    let conf = conf(root)?;
    let plan = ltsp::changes(root, &conf.tftp_dir())?;
    print(json, &planned(root, &conf, &plan)?, show_plan)?;
    Ok(Status::Done)
}

fn planned(root: &Root, conf: &Conf, plan: &LtspPlan) -> Outcome<Plan> {
    let file = |change: &eke_apply::files::Change| PlannedFile {
        path: format!("/{}", change.path),
        reason: REASON.to_owned(),
        text: match &change.new {
            Content::Text { text, .. } => text.clone(),
            _ => String::new(),
        },
    };
    Ok(Plan {
        files: plan.changes.iter().map(file).collect(),
        commands: plan.commands.iter().map(command).collect(),
        notes: notes(root, conf, !plan.commands.is_empty())?,
    })
}

/// `runs_initrd`: `ltsp initrd` runs anyway.
fn notes(root: &Root, conf: &Conf, runs_initrd: bool) -> Outcome<Vec<String>> {
    let mut notes = conf.notes.clone();
    if !conf.is_switched_on {
        notes.push(
            "no client uses eke yet: write EKE=auto below [clients] in /etc/ltsp/ltsp.conf, then run `ltsp initrd`"
                .to_owned(),
        );
    } else if !runs_initrd && !conf.image(root)?.is_conf_current {
        notes.push("ltsp.conf was changed since `ltsp initrd`: run it, then restart the clients".to_owned());
    }
    notes.push(IN_IMAGE.to_owned());
    notes.extend(enabled_here(root));
    Ok(notes)
}

/// Of the links there only the names count: those of a root elsewhere lead nowhere.
fn enabled_here(root: &Root) -> Option<String> {
    let names = root.list(WANTS).unwrap_or_default();
    names.iter().any(|name| name == "eke.service").then(|| ENABLED.to_owned())
}

fn command(command: &Ran) -> Command {
    Command { command: command.to_string(), reason: command.why.clone() }
}

fn show_plan(plan: &Plan) {
    for file in &plan.files {
        putln!("{} is written: {}", file.path, file.reason);
        for line in file.text.lines() {
            putln!("  + {line}");
        }
    }
    for command in &plan.commands {
        putln!("{} runs: it {}", command.command, command.reason);
    }
    if plan.files.is_empty() && plan.commands.is_empty() {
        putln!("Nothing to change: eke is in the clients' boot.");
    }
    show_notes(&plan.notes);
}

fn show_notes(notes: &[String]) {
    for note in notes {
        putln!("note: {}", one_line(note));
    }
}

/// Writes the script, and runs `ltsp initrd`, which writes `ltsp.img` anew.
pub fn install(root: &Root, json: bool) -> Outcome {
    need_root(root, "`eke ltsp install` writes /etc/ltsp, which needs root")?;
    let conf = conf(root)?;
    let plan = ltsp::changes(root, &conf.tftp_dir())?;
    let Written { files, ran, to_run } = ltsp::write(root, &plan)?;
    let done = Done {
        files: files.iter().map(|file| format!("/{}", file.path)).collect(),
        kept: Vec::new(),
        ran: ran.iter().map(command).collect(),
        to_run: to_run.iter().map(command).collect(),
        notes: notes(root, &conf, !to_run.is_empty())?,
    };
    print(json, &done, |done| {
        done.files.iter().for_each(|file| putln!("wrote {file}"));
        show_commands(done);
        putln!("eke is in the clients' boot. `eke ltsp uninstall` takes it out again.");
        show_notes(&done.notes);
    })?;
    Ok(Status::Done)
}

/// Restores the files, and runs `ltsp initrd`, which writes `ltsp.img` without them. In part: clients of some images may still run eke.
pub fn uninstall(root: &Root, json: bool) -> Outcome {
    need_root(root, "`eke ltsp uninstall` restores /etc/ltsp, which needs root")?;
    let conf = conf(root)?;
    let Undone { files, ran, to_run } = ltsp::undo(root, &conf.tftp_dir())?;
    let mut done = Done {
        ran: ran.iter().map(command).collect(),
        to_run: to_run.iter().map(command).collect(),
        ..Done::default()
    };
    for file in &files {
        match &file.outcome {
            Reverted::Restored | Reverted::Removed => done.files.push(format!("/{}", file.path)),
            Reverted::Kept(why) => done.kept.push(format!("/{}: {why}", file.path)),
            Reverted::Unchanged => {}
        }
    }
    if root.exists(SCRIPT) && done.kept.is_empty() {
        done.notes.push(format!("/{SCRIPT} stays: `eke ltsp install` did not write it"));
    }
    let is_changed = !(done.files.is_empty() && done.ran.is_empty() && done.to_run.is_empty());
    if is_changed {
        done.notes.push(KEPT.to_owned());
        done.notes.extend(conf.is_switched_on.then(|| STILL_ON.to_owned()));
        done.notes.extend(enabled_here(root));
    }
    print(json, &done, show_uninstalled)?;
    Ok(if is_changed && conf.is_switched_on { Status::InPart } else { Status::Done })
}

fn show_uninstalled(done: &Done) {
    done.files.iter().for_each(|file| putln!("{file} is as it was"));
    done.kept.iter().for_each(|file| putln!("left alone: {file}"));
    show_commands(done);
    match (done.files.is_empty() && done.ran.is_empty() && done.to_run.is_empty(), done.kept.is_empty()) {
        (true, true) => putln!("eke was not installed for LTSP's clients."),
        (true, false) => {}
        (false, _) => putln!("The server's ltsp.img brings eke's script to no client from its next boot on."),
    }
    show_notes(&done.notes);
}

fn show_commands(done: &Done) {
    done.ran.iter().for_each(|c| putln!("ran {} ({})", c.command, c.reason));
    done.to_run.iter().for_each(|c| putln!("to run on that system: {} ({})", c.command, c.reason));
}

fn need_root(root: &Root, why: &str) -> Outcome<()> {
    if rustix::process::geteuid().is_root() || !root.is_host() {
        return Ok(());
    }
    Err(Failure::new(Status::NotPermitted, why)
        .hint("try again with sudo; `eke ltsp plan` and `eke ltsp status` work without where other users can read ltsp.conf"))
}

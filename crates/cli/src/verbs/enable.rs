//! `eke enable` and `eke disable`: start eke at every boot, or no longer.

use std::path::Path;

use eke_apply::boot::enable;
use eke_apply::boot::enable::Init;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::putln;
use eke_swap::Swap;

use super::{Context, files};

/// Starts eke at every boot from now on.
pub fn enable(context: &Context) -> Outcome {
    context.need_root("`eke enable` installs a boot script or unit, which needs root")?;
    refuse_in_container(context)?;
    let bin_dir = bin_dir()?;
    let plan = enable::changes(&context.root, &bin_dir)?;
    let written = enable::write(&context.root, &plan)?;
    files::show_written(&written);
    for note in &plan.notes {
        putln!("note: {note}");
    }
    putln!(
        "eke starts at every boot by {} ({}). `eke up` starts it now, `eke disable` undoes this.",
        name(plan.init),
        plan.evidence
    );
    Ok(Status::Done)
}

/// Swap and settings are the host's, and the unit does not start in a container.
fn refuse_in_container(context: &Context) -> Outcome<()> {
    match Swap.probe(&context.root).map_err(super::plan::failure)?.elsewhere() {
        Some(elsewhere) => Err(Failure::new(Status::Failed, format!("this is {elsewhere}"))),
        None => Ok(()),
    }
}

/// Starts eke at boot no longer; what is applied stays until `down`.
pub fn disable(context: &Context) -> Outcome {
    context.need_root("`eke disable` removes a boot script or unit, which needs root")?;
    let undone = enable::undo(&context.root)?;
    if undone.files.is_empty() {
        putln!("eke was not enabled.");
        return Ok(Status::Done);
    }
    files::show_undone(&undone);
    putln!("eke no longer starts at boot. What is applied now stays until `eke down`.");
    Ok(Status::Done)
}

/// The directory of this program.
pub fn bin_dir() -> Outcome<String> {
    let exe = std::env::current_exe()?;
    let dir = exe.parent().and_then(Path::to_str);
    dir.map(str::to_owned).ok_or_else(|| {
        Failure::new(
            Status::Failed,
            format!("{} is not a directory to start eke from at boot", exe.display()),
        )
    })
}

fn name(init: Init) -> &'static str {
    match init {
        Init::Systemd => "systemd",
        Init::OpenRc => "OpenRC",
        Init::Sysv => "System V init",
        Init::RcLocal => "/etc/rc.local",
    }
}

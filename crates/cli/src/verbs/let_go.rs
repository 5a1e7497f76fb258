//! Lets go of the files behind zram while the machine shuts down, so that their file systems can be unmounted.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use eke_apply::drain;
use eke_linux::Root;
use eke_present::exit::{Outcome, Status};
use eke_swap::decide::REMEDY;

use super::Context;

/// How long programs that end meanwhile may make room for the pages; systemd gives a unit 90 s.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_secs(1);

/// The verb. It does nothing unless the machine shuts down: a unit's command at its end also runs at a restart of the unit.
pub fn run(context: &Context) -> Outcome {
    context.need_root("letting go of files behind zram needs root")?;
    if !shuts_down(&context.root) {
        return Ok(Status::Done);
    }
    let until = Instant::now() + PATIENCE;
    loop {
        let stay = drain::files(&context.root, REMEDY)?;
        if stay.is_empty() {
            return Ok(Status::Done);
        }
        if Instant::now() >= until {
            stay.iter().for_each(|(device, why)| eke_present::warn!("eke: {device} keeps its file: {why}"));
            return Ok(Status::InPart);
        }
        context.root.sleep(PAUSE);
    }
}

/// Whether systemd shuts down. The scripts for other init systems ask that themselves.
fn shuts_down(root: &Root) -> bool {
    if !root.exists("run/systemd/system") {
        return true;
    }
    let state = Command::new("systemctl")
        .arg("is-system-running")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    state.is_ok_and(|state| state.stdout.trim_ascii() == b"stopping")
}

//! `eke-bench lab session`: the driver of a session, a process in the box or in the small machine.

use std::ffi::OsString;
use std::io::Read;
use std::path::Path;

use eke_bench_desktop::desktop::{self, User, own_process};
use eke_bench_desktop::session::{End, Spec};
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::stop;

/// The verb. Every end of a session is a result; the verb fails only if the session cannot run.
pub fn run(chroot: Option<&Path>, spec: &str) -> Outcome {
    let spec = read(spec)?;
    let stop = stop::on_signals()?;
    if let Some(dir) = chroot {
        own_process::enter_root(dir).map_err(|e| Failure::new(Status::Failed, e.to_string()))?;
    }
    if let Err(e) = own_process::lock_memory() {
        eke_present::warn!("eke-bench lab session: its own memory may be pushed out too: {e}");
    }
    // This works in another root directory, too: the kernel follows the link to the program itself, not its name.
    let stressor = ["/proc/self/exe", "stressor"].map(OsString::from);
    // A viewer reads foreign files, and in a tree of its own it needs no privileges.
    let user = chroot.map(|_| User::NOBODY);
    match desktop::run(&spec, &stressor, user, std::io::stdout(), &stop) {
        End::Failed { why } => Err(Failure::new(Status::Failed, why)),
        _ => Ok(Status::Done),
    }
}

fn read(spec: &str) -> Outcome<Spec> {
    let text = match (spec, spec.strip_prefix('@')) {
        ("-", _) => std::io::read_to_string(std::io::stdin().lock().take(1 << 24))?,
        (_, Some(file)) => std::fs::read_to_string(file)
            .map_err(|e| Failure::new(Status::Usage, format!("cannot read {file}: {e}")))?,
        _ => spec.to_owned(),
    };
    serde_json::from_str(&text)
        .map_err(|e| Failure::new(Status::Usage, format!("this is not what a session can do: {e}")))
}

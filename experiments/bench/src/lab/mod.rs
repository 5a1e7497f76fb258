//! The processes that experiments start: drivers of sessions, launchers, slow disks.

mod echo;
mod picture;
mod session;
mod slow_disk;
mod startup;
mod sweep;
mod tabs;

use eke_present::exit::Outcome;

use crate::args::Lab;
use crate::context::Context;

/// Runs one.
pub fn run(context: &Context, lab: Lab) -> Outcome {
    match lab {
        Lab::SlowDisk(options) => slow_disk::run(context, options),
        Lab::Session { chroot, spec } => session::run(chroot.as_deref(), &spec),
        Lab::Startup { task } => startup::run(&task),
        Lab::Sweep => sweep::run(context),
        Lab::Pages { tabs, weight, documents } => tabs::pages(tabs, weight, documents),
        Lab::Tabs { spec } => tabs::run(context, &spec),
        Lab::Echo { command } => echo::run(&command),
        Lab::Picture { time } => picture::run(time),
    }
}

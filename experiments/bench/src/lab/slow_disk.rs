//! `eke-bench lab slow-disk`: a slow block device until Ctrl-C, or a measurement of its accuracy.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use eke_present::exit::{Failure, Outcome, Status};
use eke_present::putln;
use eke_present::stop;
use eke_present::task::{Task, expected};
use eke_slow_disk::{Error, Image, Profile, SlowDisk, SlowDiskSpec, accuracy};
use serde::Serialize;

use crate::args;
use crate::context::Context;

/// The device, printed before the wait.
#[derive(Serialize)]
struct Attached<'a> {
    device: &'a std::path::Path,
    profile: &'a str,
}

/// The verb.
pub fn run(context: &Context, options: args::SlowDisk) -> Outcome {
    context.need_root("a slow disk is a mount and a loop device, which needs root")?;
    let stop = stop::on_signals()?;
    let disk = SlowDisk::attach(&context.root, spec(&options)?).map_err(failure)?;
    if options.measure {
        measure(context, &disk, options.seconds, &stop)?;
    } else {
        wait(context, &disk, &stop)?;
    }
    disk.detach().map_err(failure)?;
    Ok(Status::Done)
}

fn spec(options: &args::SlowDisk) -> Outcome<SlowDiskSpec> {
    let profile = Profile::named(&options.profile);
    let profile = profile
        .ok_or_else(|| Failure::new(Status::Usage, format!("no disk is called {}", options.profile)))?;
    let image = options.image.clone().map_or(Image::Memory, Image::File);
    Ok(SlowDiskSpec::new(image, options.size, profile))
}

fn measure(context: &Context, disk: &SlowDisk, seconds: u32, stop: &AtomicBool) -> Outcome<()> {
    let whole = Duration::from_secs(u64::from(seconds)) * accuracy::METRICS;
    let task = Task::begin(context.json, "reading and writing by fio", expected(whole));
    let measured = accuracy::measure(disk, seconds, stop).map_err(failure)?;
    drop(task);
    context.print(&measured, |m| putln!("{}", accuracy::render(m).trim_end()))
}

fn wait(context: &Context, disk: &SlowDisk, stop: &AtomicBool) -> Outcome<()> {
    let profile = &disk.spec().profile.name;
    let attached = Attached { device: disk.device(), profile };
    context.print(&attached, |a| putln!("{} ({}); Ctrl-C detaches it", a.device.display(), a.profile))?;
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

fn failure(error: Error) -> Failure {
    let status = match &error {
        Error::Spec(_) => Status::Usage,
        e if e.is_permission() => Status::NotPermitted,
        _ => Status::Failed,
    };
    Failure::new(status, error.to_string())
}

//! The driver of a session. It starts a screen, a window manager and viewers as its children, does the acts of the
//! [`Spec`], and prints each event.
//!
//! The driver is a process in the box, or in the small machine, and stays small: one thread, no image of a whole window, its
//! own memory locked. All programs of a session end with the driver, also when it is killed.
//!
//! - [`viewer`]: the viewers, as data; [`needs`]: the files of a tree for them; [`own_process`]: entering such a tree
//! - `bare`: an X server alone, for experiments that time windows themselves
//! - `programs`, `display`, `cookie`, `children`, `ballast`, `home`: starting and ending programs
//! - `windows`, `screen`, `memory`: observing them
//! - `redraw`: decides when a window is drawn; pure
//! - `driver`, `acts`: the wait for the first of several events; the acts
//! - `stop`: why a session stops

mod acts;
mod ballast;
pub mod bare;
mod children;
mod cookie;
mod display;
mod driver;
mod home;
mod memory;
pub mod needs;
pub mod own_process;
mod programs;
mod redraw;
mod screen;
mod stop;
pub mod viewer;
mod windows;

use std::ffi::OsString;
use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustix::fd::AsFd;

use crate::session::{End, Event, Spec};
use driver::{Driver, Listener};
pub use needs::{Needs, needs};
pub use programs::find;
use stop::{Stop, failed};
pub use viewer::{Viewer, viewers};

/// The least time that the screen and the ballast have to start, also if the session's patience is shorter.
const START_WITHIN: Duration = Duration::from_secs(120);

/// The user that a program runs as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    /// The user's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
}

impl User {
    /// `nobody` and its group, who own nothing: the kernel's numbers for users that it cannot name
    /// (`DEFAULT_OVERFLOWUID`, include/linux/highuid.h). The `/etc/passwd` of a test image has them.
    pub const NOBODY: Self = Self { uid: 65534, gid: 65534 };
}

/// Runs a session until its end, until a signal sets `stop`, or until nobody reads `out`. Every event, the end too, is one
/// line of JSON on `out`.
///
/// `stressor` is the program of the ballast; its last argument is a `StressorSpec`. The screen, the window manager and the
/// viewers run as `user`, who must be able to read the documents and to write to `/tmp`. Without `user`, and for the memory
/// stressor, programs run as this process's user. Children end when the calling thread does.
pub fn run(
    spec: &Spec,
    stressor: &[OsString],
    user: Option<User>,
    out: impl Write + AsFd,
    stop: &AtomicBool,
) -> End {
    let mut writer = out;
    // Two descriptors of the same output: lines go to one, the other is only polled.
    let Ok(fd) = writer.as_fd().try_clone_to_owned() else {
        return End::Failed { why: "cannot duplicate the output: too many open files".into() };
    };
    let listener = Listener { to: &mut writer, fd: fd.as_fd() };
    let end = match Driver::new(listener, stop, user) {
        Ok(mut driver) => run_to_end(spec, stressor, &mut driver),
        Err(Stop::Ended(end)) => end,
        Err(Stop::Display(why)) => End::Failed { why },
    };
    // All programs have ended by now.
    let line = serde_json::to_string(&Event::Ended(end.clone())).unwrap_or_default();
    let _ = writeln!(writer, "{line}").and_then(|()| writer.flush());
    end
}

fn run_to_end(spec: &Spec, stressor: &[OsString], driver: &mut Driver<'_>) -> End {
    match run_acts(spec, stressor, driver) {
        Ok(()) => End::Finished,
        Err(stop) => driver.cause(stop),
    }
}

fn run_acts(spec: &Spec, stressor: &[OsString], driver: &mut Driver<'_>) -> Result<(), Stop> {
    let started = Instant::now();
    let viewer = viewer::viewer(&spec.viewer).ok_or_else(|| unknown_viewer(&spec.viewer))?;
    if spec.merge_same_pages {
        own_process::merge_same_pages()
            .map_err(|e| failed(format!("this kernel does not merge equal pages of programs: {e}")))?;
    }
    let until = started + START_WITHIN.max(acts::patience(spec));
    let display = display::start(driver, spec.screen, until)?;
    ballast::start(driver, stressor, spec.ballast, until)?;
    driver.report(&Event::Ready { seconds: started.elapsed().as_secs_f64() })?;
    let mut desktop = acts::Desktop::new(spec, viewer, driver, display);
    spec.acts.iter().try_for_each(|act| desktop.act(*act))
}

fn unknown_viewer(name: &str) -> Stop {
    let names: Vec<&str> = viewers().iter().map(|v| v.name).collect();
    failed(format!("no viewer is called {name}; there are {}", names.join(", ")))
}

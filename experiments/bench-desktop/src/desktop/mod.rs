//! The driver of a session: it starts a screen, a window manager and viewers as its children, does what the
//! [`Spec`] says, and prints what happened.
//!
//! It is a process in the box, or in the small machine, and stays small: one thread, no image of a whole window, its own
//! memory locked. Nothing of a session is left behind: programs end with it, also when it is killed.
//!
//! - [`viewer`]: the viewers, as data; [`needs`]: what a tree for them holds; [`place`]: entering such a tree
//! - `bare`: an X server alone, for experiments that time windows themselves
//! - `display`, `cookie`, `children`, `ballast`, `home`: the programs
//! - `windows`, `screen`, `memory`: what is seen of them
//! - `drawn`: is it drawn? Pure
//! - `room`, `acts`: the wait for whatever comes first; the acts

mod acts;
mod ballast;
pub mod bare;
mod children;
mod cookie;
mod display;
mod drawn;
mod home;
mod memory;
pub mod needs;
pub mod place;
mod room;
mod screen;
pub mod viewer;
mod windows;

use std::ffi::OsString;
use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustix::fd::AsFd;

use crate::session::{End, Event, Spec};
pub use needs::{Needs, find, needs};
use room::{Listener, Room, Stop};
pub use viewer::{Viewer, viewers};

/// The screen and the ballast may take so long, if the session's patience is shorter.
const START_WITHIN: Duration = Duration::from_secs(120);

/// Whose a program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    /// The user's number.
    pub uid: u32,
    /// The group's.
    pub gid: u32,
}

impl User {
    /// Who owns nothing: `nobody` and its group, by the kernel's numbers for users that it cannot name
    /// (`DEFAULT_OVERFLOWUID`, include/linux/highuid.h), which a stage's `/etc/passwd` has.
    pub const NOBODY: Self = Self { uid: 65534, gid: 65534 };
}

/// Holds a session in this process's surroundings until its end, a signal (`stop`), or until nobody listens; every event
/// is one line of JSON on `out`, the end too. `stressor` is the program of the ballast, which gets a `StressorSpec` as its last
/// argument. The screen, the window manager and the viewers run as `user`, who must be able to read the documents and to
/// write to `/tmp`; the memory stressor and, without one, all run as this process does. Children end when the calling thread does.
pub fn run(
    spec: &Spec,
    stressor: &[OsString],
    user: Option<User>,
    out: impl Write + AsFd,
    stop: &AtomicBool,
) -> End {
    let mut writer = out;
    // Two views of one thing: the lines go to one, the other is only polled.
    let Ok(fd) = writer.as_fd().try_clone_to_owned() else {
        return End::Failed { why: "the output cannot be used twice: too many open files".into() };
    };
    let listener = Listener { to: &mut writer, fd: fd.as_fd() };
    let end = match Room::new(listener, stop, user) {
        Ok(mut room) => hold_to_its_end(spec, stressor, &mut room),
        Err(Stop::Ended(end)) => end,
        Err(Stop::Display(why)) => End::Failed { why },
    };
    // The programs are gone by now.
    let line = serde_json::to_string(&Event::Ended(end.clone())).unwrap_or_default();
    let _ = writeln!(writer, "{line}").and_then(|()| writer.flush());
    end
}

fn hold_to_its_end(spec: &Spec, stressor: &[OsString], room: &mut Room<'_>) -> End {
    match hold(spec, stressor, room) {
        Ok(()) => End::Finished,
        Err(stop) => room.judge(stop),
    }
}

fn hold(spec: &Spec, stressor: &[OsString], room: &mut Room<'_>) -> Result<(), Stop> {
    let started = Instant::now();
    let viewer = viewer::viewer(&spec.viewer).ok_or_else(|| unknown_viewer(&spec.viewer))?;
    if spec.merge_same_pages {
        place::merge_same_pages()
            .map_err(|e| room::failed(format!("this kernel does not merge equal pages of programs: {e}")))?;
    }
    let until = started + START_WITHIN.max(acts::patience(spec));
    let display = display::start(room, spec.screen, until)?;
    ballast::start(room, stressor, spec.ballast, until)?;
    room.tell(&Event::Ready { seconds: started.elapsed().as_secs_f64() })?;
    let mut desktop = acts::Desktop::new(spec, viewer, room, display);
    spec.acts.iter().try_for_each(|act| desktop.act(*act))
}

fn unknown_viewer(name: &str) -> Stop {
    let names: Vec<&str> = viewers().iter().map(|v| v.name).collect();
    room::failed(format!("no viewer is called {name}; there are {}", names.join(", ")))
}

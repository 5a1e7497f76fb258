//! The screen: an X server without hardware, and its window manager.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use rustix::process::Signal;

use super::cookie::Cookie;
use super::needs;
use super::room::{Room, Stop, failed};
use super::windows::Windows;

/// The X server.
pub(super) const SERVER: &str = "Xvfb";
/// Window managers that follow EWMH; the first that is there is taken.
pub(super) const WINDOW_MANAGERS: [&str; 4] = ["openbox", "icewm", "xfwm4", "metacity"];

/// Starts both and connects.
///
/// # Errors
/// A program is missing, died, or is not ready at `until`.
pub(super) fn start(
    room: &mut Room<'_>,
    screen: (u16, u16),
    until: Instant,
) -> Result<(Windows, String), Stop> {
    let refused = |e| failed(format!("cannot make a key to the X server: {e}"));
    let cookie = Cookie::new().map_err(refused)?;
    let key = cookie.write(room.home()).map_err(refused)?;
    room.give(&key).map_err(refused)?;
    let number = server(room, screen, &key, until)?;
    let display = format!(":{number}");
    let windows = Windows::connect(&socket(number), cookie)?;
    manager(room, &display)?;
    while !windows.managed()? {
        room.wait(Some(&windows), until, || "the window manager".to_owned())?;
    }
    windows.park_pointer()?;
    Ok((windows, display))
}

/// The number of its display: one that nobody has, chosen and told by the server itself.
fn server(room: &mut Room<'_>, (width, height): (u16, u16), key: &Path, until: Instant) -> Result<u32, Stop> {
    let program = needs::find(&[SERVER]).ok_or_else(|| missing("X server", &[SERVER], "xvfb"))?;
    sockets_directory();
    let mut command = room.command(program);
    command.arg("-auth").arg(key);
    command.args(["-displayfd", "1", "-nolisten", "tcp", "-noreset", "-screen", "0"]);
    command.arg(format!("{width}x{height}x24")).stdout(Stdio::piped());
    let child = room.children.start("X server", &mut command, Signal::TERM)?;
    let Some(mut told) = child.stdout.take() else {
        return Err(failed("the X server has no standard output"));
    };
    let mut text = Vec::new();
    while !text.ends_with(b"\n") {
        room.wait_for(&told, until, || "the X server".to_owned())?;
        let mut bytes = [0; 16];
        let n = told.read(&mut bytes).unwrap_or(0);
        text.extend_from_slice(&bytes[..n]);
    }
    let number = String::from_utf8_lossy(&text).trim().parse();
    let number = number.map_err(|_| failed("the X server does not tell the number of its display"))?;
    room.children.listens(socket(number));
    Ok(number)
}

fn socket(number: u32) -> PathBuf {
    PathBuf::from(format!("/tmp/.X11-unix/X{number}"))
}

/// The server makes it too, but complains where it is not root. It belongs to all servers of the machine, so it stays.
fn sockets_directory() {
    let dir = Path::new("/tmp/.X11-unix");
    if std::fs::create_dir(dir).is_ok() {
        let _ = std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o1777));
    }
}

fn manager(room: &mut Room<'_>, display: &str) -> Result<(), Stop> {
    let program = needs::find(&WINDOW_MANAGERS);
    let program = program.ok_or_else(|| missing("window manager", &WINDOW_MANAGERS, WINDOW_MANAGERS[0]))?;
    let mut command = room.command(program);
    room.children.start("window manager", command.env("DISPLAY", display), Signal::KILL)?;
    Ok(())
}

/// For people.
pub(super) fn missing(what: &str, programs: &[&str], package: &str) -> Stop {
    failed(format!("no {what} here ({}); Debian: apt-get install {package}", programs.join(", ")))
}

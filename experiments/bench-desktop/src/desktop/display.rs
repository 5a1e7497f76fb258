//! Starts the screen: an X server without hardware, and its window manager.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use rustix::process::Signal;

use super::cookie::Cookie;
use super::driver::Driver;
use super::programs::{SERVER, WINDOW_MANAGERS, find};
use super::stop::{Stop, failed};
use super::windows::Windows;

/// Starts both and connects. Returns the connection and the display's name.
///
/// # Errors
/// A program is missing, died, or is not ready at `until`.
pub(super) fn start(
    driver: &mut Driver<'_>,
    screen: (u16, u16),
    until: Instant,
) -> Result<(Windows, String), Stop> {
    let refused = |e| failed(format!("cannot make a key to the X server: {e}"));
    let cookie = Cookie::new().map_err(refused)?;
    let key = cookie.write(driver.home()).map_err(refused)?;
    driver.give(&key).map_err(refused)?;
    let number = server(driver, screen, &key, until)?;
    let display = format!(":{number}");
    let windows = Windows::connect(&socket(number), cookie)?;
    manager(driver, &display)?;
    while !windows.managed()? {
        driver.wait(Some(&windows), until, || "the window manager".to_owned())?;
    }
    windows.park_pointer()?;
    Ok((windows, display))
}

/// Starts the X server. It chooses a free display number and prints it.
fn server(
    driver: &mut Driver<'_>,
    (width, height): (u16, u16),
    key: &Path,
    until: Instant,
) -> Result<u32, Stop> {
    let program = find(&[SERVER]).ok_or_else(|| missing("X server", &[SERVER], "xvfb"))?;
    sockets_directory();
    let mut command = driver.command(program);
    command.arg("-auth").arg(key);
    command.args(["-displayfd", "1", "-nolisten", "tcp", "-noreset", "-screen", "0"]);
    command.arg(format!("{width}x{height}x24")).stdout(Stdio::piped());
    let child = driver.children.start("X server", &mut command, Signal::TERM)?;
    let Some(mut output) = child.stdout.take() else {
        return Err(failed("the X server has no standard output"));
    };
    let mut text = Vec::new();
    while !text.ends_with(b"\n") {
        driver.wait_for(&output, until, || "the X server".to_owned())?;
        let mut bytes = [0; 16];
        let n = output.read(&mut bytes).unwrap_or(0);
        text.extend_from_slice(&bytes[..n]);
    }
    let number = String::from_utf8_lossy(&text).trim().parse();
    let number = number.map_err(|_| failed("the X server did not print its display number"))?;
    driver.children.listens(socket(number));
    Ok(number)
}

fn socket(number: u32) -> PathBuf {
    PathBuf::from(format!("/tmp/.X11-unix/X{number}"))
}

/// Makes the directory of sockets. The server makes it too, but complains where it is not root. All X servers of the machine
/// share it, so it stays.
fn sockets_directory() {
    let dir = Path::new("/tmp/.X11-unix");
    if std::fs::create_dir(dir).is_ok() {
        let _ = std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o1777));
    }
}

fn manager(driver: &mut Driver<'_>, display: &str) -> Result<(), Stop> {
    let program = find(&WINDOW_MANAGERS);
    let program = program.ok_or_else(|| missing("window manager", &WINDOW_MANAGERS, WINDOW_MANAGERS[0]))?;
    let mut command = driver.command(program);
    driver.children.start("window manager", command.env("DISPLAY", display), Signal::KILL)?;
    Ok(())
}

/// The error for a program that is not installed.
pub(super) fn missing(what: &str, programs: &[&str], package: &str) -> Stop {
    failed(format!("no {what} is installed ({}); Debian: apt-get install {package}", programs.join(", ")))
}

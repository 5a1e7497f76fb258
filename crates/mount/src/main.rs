//! `eke-cache`: serves a compressed page cache over one directory. Started by `eke cache mount`.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::ExitCode;

use eke_mount::serve::{Options, serve, supervisor};
use eke_mount::settings::Settings;

const USAGE: &str = "eke-cache is started by `eke cache mount DIR`.\n\n\
    eke-cache serve [--foreground] [--log FILE] [--socket PATH] < SETTINGS\n\
    Mounts as the settings (JSON) say, and prints one line, {\"ready\":…} or {\"error\":…}. Then it goes on without a terminal.\n";

fn main() -> ExitCode {
    let begun = arguments(std::env::args().skip(1)).and_then(|a| begin(&a).map_err(|e| e.to_string()));
    match begun {
        Ok((settings, options)) => serve(settings, options),
        Err(what) => {
            eprintln!("{what}");
            ExitCode::from(2)
        }
    }
}

#[derive(Debug, Default)]
struct Arguments {
    foreground: bool,
    log: Option<PathBuf>,
    socket: Option<PathBuf>,
    /// For tests: as on a kernel that cannot give a dead worker's requests to the next one.
    no_resend: bool,
}

fn arguments(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    if words.next().as_deref() != Some("serve") {
        return Err(USAGE.to_owned());
    }
    let mut arguments = Arguments::default();
    while let Some(word) = words.next() {
        let mut path =
            || words.next().map(PathBuf::from).ok_or_else(|| format!("{word} needs a path\n{USAGE}"));
        match word.as_str() {
            "--foreground" => arguments.foreground = true,
            "--no-resend" => arguments.no_resend = true,
            "--log" => arguments.log = Some(path()?),
            "--socket" => arguments.socket = Some(path()?),
            other => return Err(format!("\"{other}\" is not an option\n{USAGE}")),
        }
    }
    Ok(arguments)
}

fn begin(arguments: &Arguments) -> io::Result<(Settings, Options)> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let settings = serde_json::from_str(&text)?;
    let report = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let listener = arguments.socket.as_ref().map(UnixListener::bind).transpose()?;
    if let Some(listener) = &listener {
        listener.set_nonblocking(true)?;
    }
    detach(arguments)?;
    let shutdown = supervisor::signals::stream()?;
    Ok((settings, Options { listener, shutdown, report, no_resend: arguments.no_resend }))
}

/// Workers are forks, so standard streams are given up before the first of them.
fn detach(arguments: &Arguments) -> io::Result<()> {
    // The directory where it was started must stay unmountable.
    std::env::set_current_dir("/")?;
    let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    match &arguments.log {
        Some(log) => {
            let log = OpenOptions::new().append(true).create(true).open(log)?;
            rustix::stdio::dup2_stderr(&log)?;
        }
        None if arguments.foreground => {}
        None => rustix::stdio::dup2_stderr(&null)?,
    }
    if !arguments.foreground {
        // A leader of a group is a session of its own already, or a job of a shell that wants it so.
        let _ = rustix::process::setsid();
    }
    Ok(())
}

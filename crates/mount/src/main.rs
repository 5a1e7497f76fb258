//! `eke-cache`: serves a compressed page cache over one directory. Started by `eke cache mount`.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::process::ExitCode;

use eke_mount::serve::touched::Touched;
use eke_mount::serve::{Options, serve, supervisor};
use eke_mount::settings::Settings;

#[global_allocator]
static ALLOCATOR: Touched = Touched;

const USAGE: &str = "eke-cache is started by `eke cache mount DIR`.

    eke-cache serve < SETTINGS

Mounts as the settings (JSON) say, prints one line, {\"ready\":…} or {\"error\":…}, and serves until it is unmounted.
What it has to say then goes to standard error.";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let no_resend = match words[..] {
        ["serve"] => false,
        // For tests: as on a kernel before 6.9.
        ["serve", "--no-resend"] => true,
        _ => return wrong(USAGE),
    };
    match begin(no_resend) {
        Ok((settings, options)) => serve(settings, options),
        Err(e) => wrong(&format!("eke-cache cannot begin: {e}")),
    }
}

fn wrong(what: &str) -> ExitCode {
    eprintln!("{what}");
    ExitCode::from(2)
}

fn begin(no_resend: bool) -> io::Result<(Settings, Options)> {
    let settings = serde_json::from_reader(io::stdin().lock())?;
    let report = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    detach()?;
    let shutdown = supervisor::signals::stream()?;
    Ok((settings, Options { shutdown, report, no_resend }))
}

/// From where it was started. Workers are forks, so this comes before the first of them.
fn detach() -> io::Result<()> {
    // That directory must stay unmountable.
    std::env::set_current_dir("/")?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    // A leader of a group cannot, and is not reached by the terminal's signals either.
    let _ = rustix::process::setsid();
    Ok(())
}

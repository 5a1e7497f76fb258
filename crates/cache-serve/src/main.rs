//! `eke-cache`: serves a compressed page cache over one directory. Started by `eke cache mount`.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::Duration;

use eke_cache_mounts::settings::Settings;
use eke_cache_serve::touched::Touched;
use eke_cache_serve::{Options, Tests, serve, supervisor};

#[global_allocator]
static ALLOCATOR: Touched = Touched;

const USAGE: &str = "eke-cache is started by `eke cache mount DIR`.

    eke-cache serve [--force] < SETTINGS

Mounts as the settings (JSON) say, prints one line, {\"ready\":…} or {\"error\":…}, and serves until it is unmounted.
What it has to say then goes to standard error. --force: also over a directory where programs have files open for writing.";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ["serve", options @ ..] = &words[..] else { return wrong(USAGE) };
    let mut begun = (Tests::default(), false);
    for option in options {
        match *option {
            "--force" => begun.1 = true,
            "--no-resend" => begun.0.no_resend = true,
            "--no-ttl" => begun.0.ttl = Some(Duration::ZERO),
            _ => return wrong(USAGE),
        }
    }
    match begin(begun.0, begun.1) {
        Ok((settings, options)) => serve(settings, options),
        Err(e) => wrong(&format!("eke-cache cannot begin: {e}")),
    }
}

fn wrong(what: &str) -> ExitCode {
    eprintln!("{what}");
    ExitCode::from(2)
}

fn begin(tests: Tests, force: bool) -> io::Result<(Settings, Options)> {
    let settings = serde_json::from_reader(io::stdin().lock())?;
    let report = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    detach()?;
    let shutdown = supervisor::signals::stream()?;
    Ok((settings, Options { shutdown, report, force, tests }))
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

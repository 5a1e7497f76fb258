//! `eke-cache`: serves a compressed page cache over one directory. `eke cache mount` starts it; mount(8) reaches that verb through it.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use eke_cache_mounts::settings::Settings;
use eke_cache_serve::prefault::PrefaultingAllocator;
use eke_cache_serve::{ServeOptions, TestOptions, fstab, serve, supervisor};
use eke_model::text::words;

#[global_allocator]
static ALLOCATOR: PrefaultingAllocator = PrefaultingAllocator;

const USAGE: &str = "`eke cache mount DIR` starts this program.

    eke-cache serve [--force] < SETTINGS

Mounts with the settings (JSON) on standard input, prints one line, {\"ready\":…} or {\"error\":…}, and serves until it is unmounted.
Later messages go to standard error. --force: mount also over a directory where programs have files open for writing, or
that an NFS server exports.

    eke-cache DIR PLACE [-o OPTIONS]

For mount(8), in /etc/fstab: DIR PLACE fuse.eke-cache nofail,x-systemd.before=local-fs.target 0 0. It executes `eke cache mount`.";

fn main() -> ExitCode {
    let words = match words(std::env::args_os().skip(1)) {
        Ok(words) => words,
        Err(why) => return usage_error(&format!("eke-cache: {why}")),
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let Some(arguments) = fstab::arguments(&words) {
        return mount_for_fstab(arguments);
    }
    let ["serve", options @ ..] = &words[..] else { return usage_error(USAGE) };
    let (mut tests, mut force) = (TestOptions::default(), false);
    let mut options = options.iter();
    while let Some(option) = options.next() {
        match *option {
            "--force" => force = true,
            "--no-resend" => tests.no_resend = true,
            "--keep-limits" => tests.keep_limits = true,
            "--no-ttl" => tests.ttl = Some(Duration::ZERO),
            "--patient" => tests.patience = Some(Duration::from_secs(10)),
            "--window" => {
                let milliseconds = options.next().and_then(|milliseconds| milliseconds.parse().ok());
                tests.window = milliseconds.map(Duration::from_millis);
            }
            "--state" => tests.state = options.next().map(PathBuf::from),
            _ => return usage_error(USAGE),
        }
    }
    match prepare(tests, force) {
        Ok((settings, options)) => serve(settings, options),
        Err(e) => usage_error(&format!("eke-cache cannot start: {e}")),
    }
}

/// Becomes `eke cache mount`, whose checks and messages hold for a line of `/etc/fstab` too.
fn mount_for_fstab(arguments: Result<Vec<String>, String>) -> ExitCode {
    let arguments = match arguments {
        Ok(arguments) => arguments,
        Err(why) => return usage_error(&format!("eke-cache: {why}")),
    };
    let eke = std::env::current_exe().map(|program| program.with_file_name("eke"));
    let (path, error) = match eke {
        Ok(eke) => (eke.display().to_string(), Command::new(&eke).args(arguments).exec()),
        Err(e) => ("eke beside eke-cache".to_owned(), e),
    };
    usage_error(&format!("eke-cache: cannot execute {path}: {error}; it is in the package eke"))
}

fn usage_error(message: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "{message}");
    ExitCode::from(2)
}

fn prepare(tests: TestOptions, force: bool) -> io::Result<(Settings, ServeOptions)> {
    let settings = serde_json::from_reader(io::stdin().lock())?;
    let report = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    detach()?;
    let shutdown = supervisor::signals::stream()?;
    Ok((settings, ServeOptions { shutdown, report, force, tests }))
}

/// Detaches from the terminal and the working directory. Workers are forks, so this comes before the first of them.
fn detach() -> io::Result<()> {
    // The working directory must stay unmountable.
    std::env::set_current_dir("/")?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    // Fails for a process group leader, which the terminal's signals do not reach either.
    let _ = rustix::process::setsid();
    Ok(())
}

//! `eke cache mount`.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use eke_cache_mounts::settings::{Compress, Settings};
use eke_cache_mounts::shared::SharedSettings;
use eke_cache_mounts::spill::SpillSettings;
use eke_cache_mounts::status::{Ready, RefusalKind, Request, Response};
use eke_cache_mounts::{Mount, SocketDirs, ask};
use eke_model::text::one_line;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::putln;
use eke_present::stop;
use eke_present::task::{Task, unknown};

use super::start::{Started, start, umount_command, wait};
use super::{UMOUNT_WITHIN, checks, dead, notify_ready, place, refused};
use crate::args;
use crate::show::cache::shown;
use crate::verbs::Context;

/// The verb.
pub fn run(context: &Context, options: &args::CacheMount) -> Outcome {
    let stop = stop::on_signals()?;
    let (settings, started) = mount(context, options, &stop)?;
    let Started { mut process, ready } = started;
    context.print(&ready, |r| show(r, &settings, options.foreground))?;
    if !options.foreground {
        return Ok(Status::Done);
    }
    if let Err(e) = notify_ready::ready(std::env::var_os("NOTIFY_SOCKET").as_deref()) {
        eke_present::warn!("eke: systemd cannot be told that the cache is mounted: {e}");
    }
    let ended = match wait(&mut process, &stop, || end(&ready))? {
        Some(ended) if !ended.success() => ended,
        _ => return Ok(Status::Done),
    };
    Err(Failure::new(Status::Failed, format!("eke-cache ended by itself ({ended})"))
        .hint(format!("if something is left of it: {}", umount_command(&ready.place))))
}

/// Mounts, and serves without this process.
pub fn background(context: &Context, served: &args::CacheServed) -> Outcome<Ready> {
    let options = args::CacheMount { served: served.clone(), foreground: false };
    let stop = stop::on_signals()?;
    mount(context, &options, &stop).map(|(_, started)| started.ready)
}

fn mount(context: &Context, options: &args::CacheMount, stop: &AtomicBool) -> Outcome<(Settings, Started)> {
    let settings = settings(&options.served)?;
    checks::possible(&context.root, &settings, &place::all()?)?;
    let _task = Task::begin(context.json, "mounting", unknown());
    let started = start(&settings, options, stop)?;
    Ok((settings, started))
}

fn settings(options: &args::CacheServed) -> Outcome<Settings> {
    let place = options.place.as_ref().unwrap_or(&options.dir);
    dead::remove(place)?;
    let mounted = place::all()?;
    if let Some(mount) = place::at(&mounted, place) {
        return Err(checks::taken(&mount.place));
    }
    let dir = checks::directory(&options.dir)?;
    let place = options.place.as_deref().map_or(Ok(dir.clone()), checks::directory)?;
    let spill = options.spill.as_deref().map(checks::spill_directory).transpose()?;
    let spill = spill.map(|dir| SpillSettings { dir, size: options.spill_size, day: options.spill_day });
    Ok(Settings {
        dir,
        place,
        memory: options.memory,
        compress: options.compress.into(),
        others: options.others(rustix::process::geteuid().is_root()),
        passthrough: options.passthrough.into(),
        watch: options.watch,
        names_s: options.names,
        remember: options.remember,
        keep_mounted: options.keep_mounted,
        spill,
        shared: shared(&options.shared)?,
    })
}

/// The tier that a farm shares.
///
/// # Errors
/// A file that is not there.
pub fn shared(options: &args::SharedTierArgs) -> Outcome<Option<SharedSettings>> {
    let Some(url) = options.url.clone() else { return Ok(None) };
    let file = |path: &Option<PathBuf>| path.as_deref().map(checks::shared_file).transpose();
    Ok(Some(SharedSettings {
        url,
        name: options.name.clone(),
        password: file(&options.password)?,
        ca: file(&options.ca)?,
        cert: file(&options.cert)?,
        private_key: file(&options.private_key)?,
        key: file(&options.key)?,
        bandwidth: options.rate,
    }))
}

fn show(ready: &Ready, settings: &Settings, foreground: bool) {
    let when = match settings.compress {
        Compress::Async => "after",
        Compress::Sync => "before",
    };
    let over =
        if ready.place == ready.dir { "over itself".into() } else { format!("at {}", shown(&ready.place)) };
    putln!(
        "{} is served {over}, from memory that nobody else needs, at most {}.",
        shown(&ready.dir),
        ready.memory
    );
    putln!("  compress {when} the answer to the reader");
    putln!("  seen by  {}", if settings.others { "all users" } else { "you alone" });
    if let Some(spill) = &settings.spill {
        putln!("  spill    evicted blocks go to {}", shown(&spill.dir));
    }
    if let Some(shared) = &settings.shared {
        let sealed = if shared.key.is_some() { ", encrypted" } else { "" };
        putln!("  shared   blocks of the farm are at {}{sealed}", one_line(&shared.url));
    }
    putln!("  process  {} (worker {})", ready.pid, ready.worker_pid);
    for note in &ready.notes {
        putln!("  note     {}", one_line(note));
    }
    putln!("  shown by eke cache status {}", shown(&ready.place));
    let by = umount_command(&ready.place);
    putln!("  undo     {}", if foreground { format!("Ctrl-C, or {by}") } else { by });
}

/// Ctrl-C in the foreground. True if files are still open: the supervisor serves them without this terminal.
fn end(ready: &Ready) -> Outcome<bool> {
    let mounted = place::all()?;
    let Some(mount) = place::at(&mounted, &ready.place) else { return Ok(true) };
    match umount(mount, false)? {
        Some(Response::Refused(r)) if r.kind == RefusalKind::Busy => {
            eke_present::warn!("eke: files are open there; they work until they are closed");
            answered(umount(mount, true)?)?;
            Ok(true)
        }
        other => answered(other).map(|()| false),
    }
}

fn umount(mount: &Mount, lazy: bool) -> Outcome<Option<Response>> {
    let answer = ask(&SocketDirs::host(), mount, Request::Umount { lazy }, UMOUNT_WITHIN);
    answer.map_err(|e| Failure::new(Status::Failed, format!("{}: {e}", mount.place.display())))
}

fn answered(answer: Option<Response>) -> Outcome<()> {
    match answer {
        Some(Response::Refused(refusal)) => Err(refused(&refusal)),
        _ => Ok(()),
    }
}

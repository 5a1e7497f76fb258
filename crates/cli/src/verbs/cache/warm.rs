//! `eke cache warm`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use eke_cache_mounts::status::WarmProgress;
use eke_cache_mounts::warm::{WarmEnd, warm};
use eke_cache_mounts::{Mount, SocketDirs, mounts};
use eke_linux::parse::mountinfo;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::task::{Counter, Task};
use eke_present::{put, putln, stop};

use super::{checks, refused};
use crate::documents::{CacheWarm, WarmedPath};
use crate::show;
use crate::show::cache::shown;
use crate::verbs::Context;

/// Between two lines where the output is not a terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// The verb.
pub fn run(context: &Context, paths: &[PathBuf]) -> Outcome {
    let stop = stop::on_signals()?;
    let found: Vec<PathInMount> = paths.iter().map(|path| find(path)).collect::<Outcome<_>>()?;
    let mut document = CacheWarm { paths: Vec::new() };
    for path in found {
        let warmed = one(context, path, &stop)?;
        if !context.json {
            put!("{}", show::cache::warmed(&warmed));
        }
        document.paths.push(warmed);
    }
    if context.json {
        context.print_json(&document)?;
    }
    Ok(if document.paths.iter().all(WarmedPath::is_whole) { Status::Done } else { Status::InPart })
}

/// A path, and the mount that it is on.
struct PathInMount {
    path: PathBuf,
    /// Below the mount point.
    inside: PathBuf,
    mount: Mount,
}

/// Finds the mount of a path, through links.
fn find(path: &Path) -> Outcome<PathInMount> {
    let real = std::fs::canonicalize(path).map_err(|e| checks::unreachable(path, "warm", &e))?;
    let list = std::fs::read("/proc/self/mountinfo")?;
    let all = mountinfo::parse(&list);
    let on = mountinfo::mount_of(&real, &all).map(|mount| mount.id);
    // One that stands aside says so.
    let is_of =
        |mount: &Mount| Some(mount.id) == on || mount.aside.is_some() && real.starts_with(&mount.place);
    let mount = mounts::parse(&list).into_iter().find(is_of);
    let mount = mount.ok_or_else(|| {
        Failure::new(Status::Failed, format!("{} is not in a compressed page cache", shown(path)))
            .hint("`eke cache mount DIR` mounts one, `eke cache status` lists them")
    })?;
    let own = rustix::process::geteuid();
    if !own.is_root() && own.as_raw() != mount.uid {
        let whose = format!("{} is mounted by user {}, not by you", shown(&mount.place), mount.uid);
        return Err(Failure::new(Status::NotPermitted, whose)
            .hint("only root and that user may fill its memory; what you read is kept as usual"));
    }
    let inside = real.strip_prefix(&mount.place).unwrap_or(&real).to_owned();
    Ok(PathInMount { path: real, inside, mount })
}

/// Warms one path.
fn one(context: &Context, path: PathInMount, stop: &Arc<AtomicBool>) -> Outcome<WarmedPath> {
    let (began, counter) = (Instant::now(), Counter::default());
    let what = format!("reading {}", shown(&path.path));
    let task = Task::begin(context.json, &what, counter.far());
    let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let mut lines = Lines { last: began, on: !context.json && !is_terminal };
    let tell = |progress: &WarmProgress| {
        let whole = if progress.surveyed { progress.bytes.0 } else { 0 };
        counter.set(progress.passed.0, whole);
        task.doing(&format!("{what}: {}", show::cache::warming(progress)));
        lines.tell(&path.path, progress);
        !stop.load(Ordering::Relaxed)
    };
    let end = warm(&SocketDirs::host(), &path.mount, &path.inside, tell);
    drop(task);
    let place = shown(&path.mount.place);
    match end {
        Ok(WarmEnd::Ended(progress)) => Ok(WarmedPath {
            place: path.mount.place,
            path: path.path,
            seconds: began.elapsed().as_secs_f64(),
            progress,
        }),
        Ok(WarmEnd::Stopped(progress)) => Err(Failure::new(
            Status::Failed,
            format!("interrupted: {} of files are in memory. The cache serves on", progress.kept),
        )),
        Ok(WarmEnd::Refused(refusal)) => Err(refused(&refusal)),
        Ok(WarmEnd::Dead) => {
            Err(Failure::new(Status::Failed, format!("cannot warm {place}: its supervisor is gone"))
                .hint(format!("`eke cache status {place}` shows why")))
        }
        Err(e) => Err(Failure::new(Status::Failed, format!("cannot warm {place}: {e}"))),
    }
}

/// Plain lines about how far it is, for logs.
struct Lines {
    last: Instant,
    on: bool,
}

impl Lines {
    fn tell(&mut self, path: &Path, progress: &WarmProgress) {
        if self.on && self.last.elapsed() >= LINE_EVERY {
            self.last = Instant::now();
            putln!("{}: {}", shown(path), show::cache::warming(progress));
        }
    }
}

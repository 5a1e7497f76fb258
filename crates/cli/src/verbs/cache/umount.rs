//! `eke cache umount`.

use std::io;
use std::path::Path;

use eke_cache_mounts::holders::holders;
use eke_cache_mounts::status::{Refusal, RefusalKind, Request, Response};
use eke_cache_mounts::{Mount, SocketDirs, ask, mounts, remove_dead, unmount};
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::putln;
use eke_present::task::{Task, unknown};

use super::start::umount_command;
use super::{UMOUNT_WITHIN, place, refused};
use crate::documents::CacheUmount;
use crate::show;
use crate::verbs::Context;

/// The verb.
pub fn run(context: &Context, path: &Path, lazy: bool) -> Outcome {
    let all = place::all()?;
    let mount = place::of(&all, path)?;
    is_yours(mount)?;
    let task = Task::begin(context.json, "waiting for writes to the disk", unknown());
    let answer = ask(&SocketDirs::host(), mount, Request::Umount { lazy }, UMOUNT_WITHIN);
    drop(task);
    let by_supervisor = match answer {
        Ok(Some(Response::Refused(Refusal { kind: RefusalKind::Busy, .. }))) => return Err(busy(mount)),
        Ok(Some(Response::Refused(refusal))) => return Err(refused(&refusal)),
        Ok(Some(_)) => true,
        Ok(None) => without_supervisor(mount, lazy)?,
        Err(e) if lazy => {
            eke_present::warn!("eke: {e}; unmounting without it");
            without_supervisor(mount, lazy)?
        }
        Err(e) => return Err(silent(mount, &e)),
    };
    let under = mounts::at(&place::all()?, &mount.place).is_some_and(|m| m.id != mount.id);
    let document =
        CacheUmount { place: mount.place.clone(), dir: mount.dir.clone(), by_supervisor, lazy, under };
    context.print(&document, |d| putln!("{}", show::cache::unmounted(d)))?;
    Ok(Status::Done)
}

fn is_yours(mount: &Mount) -> Outcome<()> {
    let own = rustix::process::geteuid();
    if own.is_root() || own.as_raw() == mount.uid {
        return Ok(());
    }
    let whose = format!("{} is mounted by user {}, not by you", mount.place.display(), mount.uid);
    Err(Failure::new(Status::NotPermitted, whose).hint("try again with sudo"))
}

/// Returns false: no supervisor did it.
fn without_supervisor(mount: &Mount, lazy: bool) -> Outcome<bool> {
    match unmount(mount, lazy) {
        Ok(()) => {
            remove_dead(&SocketDirs::host(), mount.device, mount.uid);
            Ok(false)
        }
        Err(e) if e.kind() == io::ErrorKind::ResourceBusy => Err(busy(mount)),
        Err(e) => {
            let status = match e.kind() {
                io::ErrorKind::PermissionDenied => Status::NotPermitted,
                _ => Status::Failed,
            };
            Err(Failure::new(status, format!("cannot unmount {}: {e}", mount.place.display())))
        }
    }
}

fn silent(mount: &Mount, error: &eke_cache_mounts::AskError) -> Failure {
    Failure::new(Status::Failed, format!("cannot unmount {}: {error}", mount.place.display()))
        .hint(format!("`{} --lazy` unmounts without the supervisor", umount_command(&mount.place)))
}

/// Names the processes that use the mount, as far as this user may see them.
fn busy(mount: &Mount) -> Failure {
    let holders = holders(Path::new("/proc"), mount);
    Failure::new(Status::Failed, show::cache::busy(&mount.place, &holders)).hint(format!(
        "end them, or run `{} --lazy`: it unmounts at once, and open files work until they are closed",
        umount_command(&mount.place)
    ))
}

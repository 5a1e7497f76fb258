//! Removing and renaming. What is open stays open.
//!
//! The kernel sends a name, and has checked what it referred to up to a second ago. The present object is compared with
//! that, and the call is made as the caller, so that the backing file system checks ownership again (sticky directories).
//!
//! Limit: between comparison and call, somebody may put another directory under the name on the backing file system. A user
//! may then move that one to another directory without the right to write to it.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, RenameFlags, Statx, renameat_with, unlinkat};
use rustix::io::{Errno, fcntl_dupfd_cloexec};

use super::{Caller, Fs, error, resent};
use crate::backing::at;
use crate::node::Node;

/// A node that is about to lose a name.
struct Victim {
    node: Arc<Node>,
    loses: LostName,
    /// The supervisor keeps a descriptor for this.
    kept: bool,
}

/// What the name is to its node.
enum LostName {
    /// One of several.
    OneOfSeveral,
    /// The last one, with a descriptor, because it cannot be opened by name afterwards.
    Last(Arc<OwnedFd>),
    /// The last one of a node that nobody has open. It keeps no descriptor.
    LastOfUnused,
}

/// A name in a directory, as an end of a rename.
#[derive(Debug, Clone, Copy)]
pub struct EntryRef<'a> {
    /// The directory's number.
    pub parent: u64,
    /// The name there.
    pub name: &'a OsStr,
}

impl Fs {
    /// Removes a name: of a directory, or of another object.
    ///
    /// # Errors
    /// Those of unlink(2) or rmdir(2); for an open file EIO if nobody can keep it, and EMFILE if users keep too many.
    pub fn unlink(&self, caller: &Caller, parent: u64, name: &OsStr, directory: bool) -> io::Result<()> {
        let dir = self.path(parent)?;
        let name = at::name(name)?;
        let end = EntryRef { parent, name };
        let found = self.as_believed(caller, &dir, end)?;
        let victim = self.victim(caller, (&dir, end), found.as_ref())?;
        let flags = if directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        let remove = || Ok(unlinkat(&dir, name, flags)?);
        let stays = victim.as_ref().filter(|victim| matches!(victim.loses, LostName::OneOfSeveral));
        let stays = stays.map(|victim| &victim.node);
        let removed =
            self.at(parent, |_| self.keeping_blocks_of(stays, || caller.acts_on(found.as_slice(), remove)));
        self.settle(victim, end, resent::removed(removed, caller))
    }

    /// The present object under the name. The call itself reports what is wrong with the name.
    ///
    /// # Errors
    /// ESTALE if the kernel does not know this object here and the caller is not root: then the kernel looks it up and
    /// checks it.
    fn as_believed(&self, caller: &Caller, dir: &OwnedFd, end: EntryRef<'_>) -> io::Result<Option<Statx>> {
        let found = caller.sees(|| at::stat_at(dir, end.name)).ok();
        let is_known_at = |s: &Statx| self.nodes.is_known_at(&self.nodes.inode(s), end.parent, end.name);
        if caller.is_other() && !caller.resent && !found.as_ref().is_none_or(is_known_at) {
            return Err(Errno::STALE.into());
        }
        Ok(found)
    }

    /// Prepares the node that will lose this name in this directory.
    fn victim(
        &self,
        caller: &Caller,
        (dir, end): (&OwnedFd, EntryRef<'_>),
        found: Option<&Statx>,
    ) -> io::Result<Option<Victim>> {
        let Some(statx) = found else { return Ok(None) };
        let Some(node) = self.nodes.find(&self.nodes.inode(statx)) else { return Ok(None) };
        self.end_lingering(node.number);
        let kind = FileType::from_raw_mode(statx.stx_mode.into());
        // The kernel opens pipes and devices itself, so whether they are open is not known here.
        let is_told = matches!(kind, FileType::RegularFile | FileType::Directory | FileType::Symlink);
        let mut is_unused = is_told && !node.is_open() && self.is_remote_at(&node, dir);
        if is_unused {
            // NFS gives a file of which it sees a descriptor another name instead (a "silly rename"), before the call replaces it.
            self.nodes.close_path(&node);
            // Somebody may have opened it meanwhile.
            is_unused = !node.is_open();
        }
        let is_dir = kind == FileType::Directory;
        if !is_dir && statx.stx_nlink > 1 {
            return Ok(Some(Victim { node, loses: LostName::OneOfSeveral, kept: false }));
        }
        self.nodes.named(&node, end.parent, end.name);
        if is_unused {
            return Ok(Some(Victim { node, loses: LostName::LastOfUnused, kept: false }));
        }
        let path = self.nodes.path(&node)?;
        // A node without a name keeps its descriptor, whatever others need.
        if !caller.leaves_room(fcntl_dupfd_cloexec(&*path, 0)) {
            if node.is_open() {
                return Err(Errno::MFILE.into());
            }
            self.nodes.close_path(&node);
            return Ok(Some(Victim { node, loses: LostName::LastOfUnused, kept: false }));
        }
        node.descriptors().stay_for(caller.uid);
        let kept = node.is_open() && self.nodes.keep(&node).map_err(|_| io::Error::from(Errno::IO))?;
        Ok(Some(Victim { node, loses: LostName::Last(path), kept }))
    }

    /// Records whether the name was removed.
    fn settle(&self, victim: Option<Victim>, end: EntryRef<'_>, done: io::Result<()>) -> io::Result<()> {
        match (victim, done) {
            (Some(victim), Ok(())) => self.lost_name(&victim, end),
            (Some(Victim { node, kept: true, .. }), Err(e)) => {
                self.nodes.unkeep(&node);
                return Err(e);
            }
            (_, done) => return done,
        }
        Ok(())
    }

    fn lost_name(&self, victim: &Victim, end: EntryRef<'_>) {
        let node = &victim.node;
        let is_last = match &victim.loses {
            LostName::OneOfSeveral => false,
            LostName::Last(path) => is_gone(path),
            LostName::LastOfUnused => true,
        };
        if is_last {
            if let LostName::Last(path) = &victim.loses {
                self.nodes.keep_path(node, path);
            }
            node.set_gone();
            if node.is_open() {
                // Opened since it was prepared. If this fails, only the next worker would miss it.
                let _ = self.nodes.keep(node);
            } else {
                self.tier.forget(self.id(node));
            }
        }
        self.nodes.unnamed(node, end.parent, end.name);
    }

    /// Renames, over an existing name if `flags` (renameat2(2)) allow it.
    ///
    /// # Errors
    /// Those of renameat2(2); EIO and EMFILE as for [`Self::unlink`]; EIO for an exchange that may have been executed already.
    pub fn rename(
        &self,
        caller: &Caller,
        from: EntryRef<'_>,
        to: EntryRef<'_>,
        flags: RenameFlags,
    ) -> io::Result<()> {
        let (dir, to_dir) = (self.path(from.parent)?, self.path(to.parent)?);
        let (name, to_name) = (at::name(from.name)?, at::name(to.name)?);
        let exchange = flags.contains(RenameFlags::EXCHANGE);
        if exchange && caller.resent {
            return Err(Errno::IO.into());
        }
        let source = self.as_believed(caller, &dir, from)?;
        let target = if exchange {
            self.as_believed(caller, &to_dir, to)?
        } else {
            caller.sees(|| at::stat_at(&to_dir, to_name)).ok()
        };
        let (moved, met) = (self.known(source.as_ref()), self.known(target.as_ref()));
        let same = moved.as_ref().zip(met.as_ref()).is_some_and(|(m, o)| m.number == o.number);
        let other = met.filter(|_| exchange);
        let replaces = !exchange && !same && !flags.contains(RenameFlags::NOREPLACE);
        let victim = if replaces { self.victim(caller, (&to_dir, to), target.as_ref())? } else { None };
        let owned: Vec<Statx> = source.into_iter().chain(target).collect();
        let rename = || Ok(renameat_with(&dir, name, &to_dir, to_name, flags)?);
        let renamed = self.at(from.parent, |_| {
            self.at(to.parent, |_| self.keeping_blocks_of(moved.as_ref(), || caller.acts_on(&owned, rename)))
        });
        let arrived = || at::stat_at(&to_dir, to_name).is_ok();
        if caller.resent && error::is(&renamed, Errno::NOENT) && arrived() {
            return Ok(());
        }
        self.settle(victim, to, renamed)?;
        if !same {
            self.moved(moved, from, to);
            self.moved(other, to, from);
        }
        Ok(())
    }

    fn known(&self, found: Option<&Statx>) -> Option<Arc<Node>> {
        self.nodes.find(&self.nodes.inode(found?))
    }

    fn moved(&self, node: Option<Arc<Node>>, from: EntryRef<'_>, to: EntryRef<'_>) {
        if let Some(node) = node {
            self.nodes.named(&node, to.parent, to.name);
            self.nodes.unnamed(&node, from.parent, from.name);
        }
    }
}

/// A directory has one name; another file may have got a second one on the backing file system.
fn is_gone(path: &OwnedFd) -> bool {
    let is_dir = |mode: u16| FileType::from_raw_mode(mode.into()) == FileType::Directory;
    at::stat(path).is_ok_and(|s| s.stx_nlink == 0 || is_dir(s.stx_mode))
}

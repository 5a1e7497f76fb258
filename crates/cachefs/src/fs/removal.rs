//! Names: taking them away and moving them. What is open stays open.
//!
//! The kernel says a name, and has checked what it had under it up to a second ago. What is there now is compared, and acted on as
//! the caller, so that the kernel below checks once more what it checks by owner: sticky directories.
//!
//! Limit: between the comparison and the act somebody below may put another directory under the name. A user may then move that one
//! to another directory without the right to write to it.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, RenameFlags, Statx, renameat_with, unlinkat};
use rustix::io::Errno;

use super::{Caller, Fs, again, error};
use crate::backing::at;
use crate::node::{self, Node};

/// A node that is about to lose a name.
struct Victim {
    node: Arc<Node>,
    /// If the name is its last: a descriptor, since it cannot be opened by name any more.
    last: Option<Arc<OwnedFd>>,
    /// The supervisor keeps a descriptor of it for this.
    kept: bool,
}

/// One end of a rename.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    /// The directory's number.
    pub parent: u64,
    /// The name there.
    pub name: &'a OsStr,
}

impl Fs {
    /// Takes a name away: a directory's, or that of anything else.
    ///
    /// # Errors
    /// What unlink(2) or rmdir(2) answers; EIO if the file is open and nobody can keep it.
    pub fn unlink(&self, caller: &Caller, parent: u64, name: &OsStr, directory: bool) -> io::Result<()> {
        let dir = self.path(parent)?;
        let name = at::name(name)?;
        let end = End { parent, name };
        let found = self.as_believed(caller, &dir, end)?;
        let victim = self.victim(found.as_ref(), end)?;
        let flags = if directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        let removed = caller.acts_on(found.as_slice(), || Ok(unlinkat(&dir, name, flags)?));
        self.settle(victim, end, again::removed(removed, caller))
    }

    /// What is under the name now. What is wrong with the name, the call itself will say.
    ///
    /// # Errors
    /// ESTALE if the kernel was never told that it is there, and asks for another than root: so it looks again, and checks that.
    fn as_believed(&self, caller: &Caller, dir: &OwnedFd, end: End<'_>) -> io::Result<Option<Statx>> {
        let found = at::stat_at(dir, end.name).ok();
        let is_told = |s: &Statx| self.nodes.is_told(&node::inode(s), end.parent, end.name);
        if caller.is_other() && !caller.again && !found.as_ref().is_none_or(is_told) {
            return Err(Errno::STALE.into());
        }
        Ok(found)
    }

    /// The node that will lose this name, made ready for it.
    fn victim(&self, found: Option<&Statx>, end: End<'_>) -> io::Result<Option<Victim>> {
        let Some(statx) = found else { return Ok(None) };
        let Some(node) = self.nodes.find(&node::inode(statx)) else { return Ok(None) };
        let is_dir = FileType::from_raw_mode(statx.stx_mode.into()) == FileType::Directory;
        if !is_dir && statx.stx_nlink > 1 {
            return Ok(Some(Victim { node, last: None, kept: false }));
        }
        self.nodes.named(&node, end.parent, end.name);
        let last = Some(self.nodes.path(&node)?);
        let kept = node.is_open() && self.nodes.keep(&node).map_err(|_| io::Error::from(Errno::IO))?;
        Ok(Some(Victim { node, last, kept }))
    }

    /// Notes that the name is gone, or that it is not.
    fn settle(&self, victim: Option<Victim>, end: End<'_>, done: io::Result<()>) -> io::Result<()> {
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

    fn lost_name(&self, victim: &Victim, end: End<'_>) {
        let node = &victim.node;
        if let Some(path) = victim.last.as_ref().filter(|p| is_gone(p)) {
            node.hold().path.get_or_insert_with(|| Arc::clone(path));
            node.set_gone();
            if node.is_open() {
                // Opened since the victim was made ready; a next worker would miss it, nothing else.
                let _ = self.nodes.keep(node);
            } else {
                self.tier.forget(self.id(node));
            }
        }
        self.nodes.unnamed(node, end.parent, end.name);
    }

    /// Moves a name, over another one if it is there and `flags` (renameat2(2)) allow it.
    ///
    /// # Errors
    /// What renameat2(2) answers; EIO as for [`Self::unlink`], and for an exchange that may have been done already.
    pub fn rename(&self, caller: &Caller, from: End<'_>, to: End<'_>, flags: RenameFlags) -> io::Result<()> {
        let (dir, to_dir) = (self.path(from.parent)?, self.path(to.parent)?);
        let (name, to_name) = (at::name(from.name)?, at::name(to.name)?);
        let exchange = flags.contains(RenameFlags::EXCHANGE);
        if exchange && caller.again {
            return Err(Errno::IO.into());
        }
        let source = self.as_believed(caller, &dir, from)?;
        let target = if exchange {
            self.as_believed(caller, &to_dir, to)?
        } else {
            at::stat_at(&to_dir, to_name).ok()
        };
        let (moved, met) = (self.known(source.as_ref()), self.known(target.as_ref()));
        let same = moved.as_ref().zip(met.as_ref()).is_some_and(|(m, o)| m.number == o.number);
        let other = met.filter(|_| exchange);
        let replaces = !exchange && !same && !flags.contains(RenameFlags::NOREPLACE);
        let victim = if replaces { self.victim(target.as_ref(), to)? } else { None };
        let owned: Vec<Statx> = source.into_iter().chain(target).collect();
        let renamed = caller.acts_on(&owned, || Ok(renameat_with(&dir, name, &to_dir, to_name, flags)?));
        let arrived = || at::stat_at(&to_dir, to_name).is_ok();
        if caller.again && error::is(&renamed, Errno::NOENT) && arrived() {
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
        self.nodes.find(&node::inode(found?))
    }

    fn moved(&self, node: Option<Arc<Node>>, from: End<'_>, to: End<'_>) {
        if let Some(node) = node {
            self.nodes.named(&node, to.parent, to.name);
            self.nodes.unnamed(&node, from.parent, from.name);
        }
    }
}

/// A directory has no second name; another file may have got one below, a moment ago.
fn is_gone(path: &OwnedFd) -> bool {
    let is_dir = |mode: u16| FileType::from_raw_mode(mode.into()) == FileType::Directory;
    at::stat(path).is_ok_and(|s| s.stx_nlink == 0 || is_dir(s.stx_mode))
}

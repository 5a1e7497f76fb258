//! What the requests have in common: whether one is answered at once, in its user's turn, or later; and the answers.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use fuser::{
    Errno, FileAttr, FileHandle, FopenFlags, Generation, INodeNo, OpenFlags, ReplyAttr, ReplyCreate,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, WriteFlags,
};

use super::Serve;
use crate::fs::data_path::by_passthrough;
use crate::fs::elsewhere::Share;
use crate::fs::leased::{self, is_leased};
use crate::fs::reply::{answer, empty};
use crate::fs::turns::Kind;
use crate::fs::{Asked, Caller, FoundNode, Fs, Lifetime, NewNode};

/// The user of changed pages that are written back: the request has none.
const NOBODY: u32 = u32::MAX;

impl Serve {
    /// The share of a request on a node.
    pub(super) fn on(&self, request: &Request, node: INodeNo) -> Option<Share> {
        self.elsewhere.take(self.fs.nodes.is_elsewhere(node.0), request.uid())
    }

    /// The share of a request on what a name leads to.
    pub(super) fn at(&self, request: &Request, parent: INodeNo, name: &OsStr) -> Option<Share> {
        self.elsewhere.take(self.fs.nodes.leads_elsewhere(parent.0, name), request.uid())
    }

    /// Lets `act` answer a request that cannot be refused.
    pub(super) fn answer_surely(&self, node: INodeNo, act: impl FnOnce(&Fs) + Send + 'static) {
        let writes = &self.elsewhere.writes;
        if let Some(_share) = writes.take(self.fs.nodes.is_elsewhere(node.0)) {
            return act(&self.fs);
        }
        let fs = Arc::clone(&self.fs);
        writes.later(move || act(&fs));
    }

    /// Lets `act` answer a request that changes something or waits for the disk, here or later.
    pub(super) fn in_turn(&self, user: u32, share: Share, act: impl FnOnce(&Self) + Send + 'static) {
        self.in_turn_of(&self.turns.changes, user, share, act);
    }

    /// The same for one that finds, opens or lists.
    pub(super) fn searching(&self, user: u32, share: Share, act: impl FnOnce(&Self) + Send + 'static) {
        self.in_turn_of(&self.turns.searches, user, share, act);
    }

    /// On another mount `share` bounds it already.
    fn in_turn_of(&self, kind: &Kind, user: u32, share: Share, act: impl FnOnce(&Self) + Send + 'static) {
        if share.is_elsewhere() {
            return act(self);
        }
        let Some(_turn) = kind.take(user) else {
            let this = self.clone();
            return kind.later(user, move || act(&this));
        };
        act(self);
    }

    /// The same for a write.
    pub(super) fn write_in_turn(&self, share: &Share, write: WriteRequest, data: &[u8], reply: ReplyWrite) {
        let changes = &self.turns.changes;
        let turn = if share.is_elsewhere() { None } else { changes.take(write.caller.uid) };
        if turn.is_some() || share.is_elsewhere() {
            return write.answer(&self.fs, data, reply);
        }
        let (fs, kept) = (Arc::clone(&self.fs), self.turns.keep(data));
        changes.later(write.caller.uid, move || write.answer(&fs, kept.bytes(), reply));
    }

    /// Removes a name.
    pub(super) fn remove(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        is_directory: bool,
        reply: ReplyEmpty,
    ) {
        let Some(share) = self.at(request, parent, name) else { return reply.error(Errno::EBUSY) };
        let (caller, name) = (Caller::from(request), name.to_owned());
        self.in_turn(caller.uid, share, move |this| {
            empty(reply, this.fs.unlink(&caller, parent.0, &name, is_directory));
        });
    }

    /// Makes what `kind` says.
    pub(super) fn make(&self, request: &Request, made: NewName, kind: OwnedKind, reply: ReplyEntry) {
        let Some(share) = self.at(request, made.parent, &made.name) else { return reply.error(Errno::EBUSY) };
        let caller = Caller::from(request);
        self.in_turn(caller.uid, share, move |this| {
            let NewName { parent, name, mode, umask } = made;
            let asked = this.asked();
            let found = this.fs.make(&caller, parent.0, &name, kind.borrowed(), mode, umask);
            this.entry(reply, asked, found);
        });
    }

    /// Lets a write of changed pages be answered, which cannot be refused either. The kernel bounds how many wait, and so the copies.
    pub(super) fn write_back(&self, write: WriteRequest, data: &[u8], reply: ReplyWrite) {
        let (elsewhere, own) = (&self.elsewhere.writes, &self.turns.write_backs);
        let is_elsewhere = self.fs.nodes.is_elsewhere(write.number);
        let share = elsewhere.take(is_elsewhere);
        let turn = if is_elsewhere { None } else { own.take(NOBODY) };
        if turn.is_some() || share.as_ref().is_some_and(Share::is_elsewhere) {
            return write.answer(&self.fs, data, reply);
        }
        let (fs, data) = (Arc::clone(&self.fs), data.to_vec());
        let act = move || write.answer(&fs, &data, reply);
        if is_elsewhere { elsewhere.later(act) } else { own.later(NOBODY, act) }
    }

    pub(super) fn asked(&self) -> Asked {
        self.fs.lifetimes().asked()
    }

    pub(super) fn lifetime(&self, asked: Asked, attr: &FileAttr) -> Lifetime {
        self.lifetime_at(asked, attr, SystemTime::now())
    }

    pub(super) fn lifetime_at(&self, asked: Asked, attr: &FileAttr, now: SystemTime) -> Lifetime {
        self.fs.lifetimes().of(asked, attr, now, || self.fs.changes_unseen(attr))
    }

    pub(super) fn entry(&self, reply: ReplyEntry, asked: Asked, found: io::Result<FoundNode>) {
        answer(reply, found, |reply, found| {
            let lifetime = self.lifetime(asked, &found.attr);
            let generation = Generation(found.generation);
            reply.entry_with_ttls(&lifetime.attributes, &lifetime.name, &found.attr, generation);
        });
    }

    pub(super) fn opened(
        &self,
        number: u64,
        flags: OpenFlags,
        opened: io::Result<(FileHandle, FopenFlags)>,
        reply: ReplyOpen,
    ) {
        answer(reply, opened, |reply, (handle, how)| match self.fs.passthrough(number, flags.0, &reply) {
            Some(id) => {
                let (handle, how) = by_passthrough(handle, how, flags.0);
                reply.opened_passthrough(handle, how, &id);
            }
            None => reply.opened(handle, how),
        });
    }

    pub(super) fn created(
        &self,
        flags: i32,
        asked: Asked,
        created: io::Result<(FoundNode, FileHandle, FopenFlags)>,
        reply: ReplyCreate,
    ) {
        answer(reply, created, |reply, (found, handle, how)| {
            let (attr, generation) = (&found.attr, Generation(found.generation));
            let ttl = &self.lifetime(asked, attr).of_both();
            match self.fs.passthrough(attr.ino.0, flags, &reply) {
                Some(id) => {
                    let (handle, how) = by_passthrough(handle, how, flags);
                    reply.created_passthrough(ttl, attr, generation, handle, how, &id);
                }
                None => reply.created(ttl, attr, generation, handle, how),
            }
        });
    }

    pub(super) fn open_now(&self, caller: Caller, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let opened = caller.sees(|| self.fs.open(&caller, ino.0, flags));
        let may_wait = is_leased(&opened) && flags.0 & libc::O_NONBLOCK == 0;
        let Some(place) = may_wait.then(|| self.leased.take(caller.uid)).flatten() else {
            return self.opened(ino.0, flags, opened, reply);
        };
        let this = self.clone();
        let wait = move || {
            this.opened(
                ino.0,
                flags,
                leased::wait(&place, || caller.sees(|| this.fs.open(&caller, ino.0, flags))),
                reply,
            );
        };
        // Without a thread the reply is dropped, which is EIO.
        let _ = std::thread::Builder::new().name("leased".into()).spawn(wait);
    }

    pub(super) fn attr(&self, reply: ReplyAttr, asked: Asked, attr: io::Result<FileAttr>) {
        answer(reply, attr, |reply, attr| reply.attr(&self.lifetime(asked, &attr).attributes, &attr));
    }
}

/// A name that is to be made.
pub(super) struct NewName {
    pub(super) parent: INodeNo,
    pub(super) name: OsString,
    pub(super) mode: u32,
    pub(super) umask: u32,
}

/// [`NewNode`] for a request that may wait.
pub(super) enum OwnedKind {
    Directory,
    Node(u32, u32),
    Symlink(PathBuf),
}

impl OwnedKind {
    pub(super) fn borrowed(&self) -> NewNode<'_> {
        match self {
            Self::Directory => NewNode::Directory,
            Self::Node(kind, device) => NewNode::Node(*kind, *device),
            Self::Symlink(target) => NewNode::Symlink(target),
        }
    }
}

/// A write, without its bytes.
#[derive(Clone, Copy)]
pub(super) struct WriteRequest {
    pub(super) caller: Caller,
    pub(super) number: u64,
    pub(super) handle: FileHandle,
    pub(super) offset: u64,
    pub(super) how: (WriteFlags, OpenFlags),
}

impl WriteRequest {
    pub(super) fn answer(&self, fs: &Fs, data: &[u8], reply: ReplyWrite) {
        let Self { caller, number, handle, offset, how } = self;
        let written = caller.sees(|| fs.write(caller, *number, *offset, data, *how));
        let synced = written.and_then(|n| fs.sync_written(*number, *handle, how.1).map(|()| n));
        answer(reply, synced, ReplyWrite::written);
    }
}

//! What the requests have in common: whether one is answered at once, in its user's turn, or later; and the answers.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    Errno, FileAttr, FileHandle, FopenFlags, Generation, INodeNo, OpenFlags, ReplyAttr, ReplyCreate,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, WriteFlags,
};

use super::Serve;
use crate::fs::data_path::by_passthrough;
use crate::fs::elsewhere::Share;
use crate::fs::error;
use crate::fs::leased::{self, is_leased};
use crate::fs::reply::{absent, answer, empty};
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
            this.entry(reply, parent, asked, found);
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

    /// The lifetime of a name in this directory, and of the attributes found there.
    fn lifetime_in(&self, parent: INodeNo, asked: Asked, attr: &FileAttr) -> Lifetime {
        self.lifetime(asked, attr).in_directory(|| self.fs.ignores_case(parent.0))
    }

    /// The lifetime of the answer that this directory has no such name.
    fn lifetime_of_absent(&self, parent: INodeNo, asked: Asked) -> Duration {
        let lifetime = self.fs.lifetimes().of_absent(asked);
        let asks = !lifetime.is_zero() && self.fs.ignores_case(parent.0);
        if asks { Duration::ZERO } else { lifetime }
    }

    pub(super) fn looked_up(
        &self,
        reply: ReplyEntry,
        parent: INodeNo,
        asked: Asked,
        found: io::Result<FoundNode>,
    ) {
        if error::is(&found, rustix::io::Errno::NOENT) {
            let lifetime = self.lifetime_of_absent(parent, asked);
            if !lifetime.is_zero() {
                return absent(reply, lifetime);
            }
        }
        self.entry(reply, parent, asked, found);
    }

    pub(super) fn entry(
        &self,
        reply: ReplyEntry,
        parent: INodeNo,
        asked: Asked,
        found: io::Result<FoundNode>,
    ) {
        answer(reply, found, |reply, found| {
            let lifetime = self.lifetime_in(parent, asked, &found.attr);
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
        (parent, asked): (INodeNo, Asked),
        created: io::Result<(FoundNode, FileHandle, FopenFlags)>,
        reply: ReplyCreate,
    ) {
        answer(reply, created, |reply, (found, handle, how)| {
            let (attr, generation) = (&found.attr, Generation(found.generation));
            let ttl = &self.lifetime_in(parent, asked, attr).of_both();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::Options;
    use crate::node::{NoLedger, ROOT};
    use crate::tier::Tier;
    use rustix::fs::{CWD, Mode, OFlags, openat};

    #[test]
    fn in_a_directory_that_ignores_case_the_kernel_asks_for_each_name() {
        for ignores_case in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            std::fs::create_dir(dir.path().join("file")).unwrap();
            let root = openat(CWD, dir.path(), OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
            let mut fs =
                Fs::new(root, Arc::new(Tier::default()), Arc::new(NoLedger), Options::default()).unwrap();
            fs.may_ignore_case = true;
            fs.lifetimes().set_reported(true);
            assert_eq!(fs.nodes().get(ROOT).unwrap().ignores_case(|| Some(ignores_case)), ignores_case);
            let file = fs.lookup(ROOT, OsStr::new("file")).unwrap().attr;
            let (serve, root) = (Serve::new(Arc::new(fs)), INodeNo(ROOT));
            let asked = serve.asked();
            let found = serve.lifetime_in(root, asked, &file);
            assert_eq!(found.name.is_zero(), ignores_case);
            assert_eq!(found.attributes, serve.lifetime(asked, &file).attributes);
            assert_eq!(serve.lifetime_of_absent(root, asked).is_zero(), ignores_case);
        }
    }
}

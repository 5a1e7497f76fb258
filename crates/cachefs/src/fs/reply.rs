//! Answers to the kernel: a value or an error.

use std::io;
use std::time::Duration;

use fuser::{
    Errno, Generation, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty,
    ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr,
};

use super::bare::dots;
use super::error::errno;

/// A reply that can be an error.
pub(super) trait Refuse {
    fn refuse(self, errno: Errno);
}

macro_rules! refuse_by_error {
    ($($reply:ty),*) => {
        $(impl Refuse for $reply {
            fn refuse(self, errno: Errno) {
                self.error(errno);
            }
        })*
    };
}

refuse_by_error!(
    ReplyAttr,
    ReplyCreate,
    ReplyData,
    ReplyDirectory,
    ReplyDirectoryPlus,
    ReplyEmpty,
    ReplyEntry,
    ReplyLseek,
    ReplyOpen,
    ReplyStatfs,
    ReplyWrite,
    ReplyXattr
);

/// Replies with the error, or lets `send` reply with the value.
pub(super) fn answer<R: Refuse, T>(reply: R, done: io::Result<T>, send: impl FnOnce(R, T)) {
    match done {
        Ok(value) => send(reply, value),
        Err(e) => reply.refuse(errno(e)),
    }
}

/// Replies that it is done.
pub(super) fn empty(reply: ReplyEmpty, done: io::Result<()>) {
    answer(reply, done, |reply, ()| reply.ok());
}

/// Replies with the value of an attribute, or with its length if the caller asked for that with `most` 0.
pub(super) fn bytes(reply: ReplyXattr, most: u32, value: io::Result<Vec<u8>>) {
    answer(reply, value, |reply, value| match most {
        0 => reply.size(u32::try_from(value.len()).unwrap_or(u32::MAX)),
        _ => reply.data(&value),
    });
}

/// The answer that a name does not exist, which the kernel may keep: node 0 (`fuse_lookup_name` in fs/fuse/dir.c).
pub(super) fn absent(reply: ReplyEntry, lifetime: Duration) {
    reply.entry_with_ttls(&Duration::ZERO, &lifetime, &dots(0).attr, Generation(0));
}

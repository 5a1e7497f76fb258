//! The thread that hears of changes in the backing directory: what is held of the file is dropped, and the kernel told to drop its pages.
//!
//! The kernel is told by the guard, because that may wait for pages that this worker has to bring.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use eke_cachefs::fs::Fs;
use eke_cachefs::node::{Inode, Node};
use eke_cachefs::tier::Tier;
use eke_cachefs::watch::{Change, Watch};

use super::stats::Sources;
use crate::log::say;
use crate::supervisor::guard;

/// What an open, a look at the attributes and a first read take, and some more.
const LOOK: Duration = Duration::from_millis(10);

/// Holds what it needs.
pub(super) struct Watcher {
    pub(super) watch: Watch,
    pub(super) fs: Arc<Fs>,
    pub(super) tier: Arc<Tier>,
    pub(super) sources: Sources,
}

impl Watcher {
    /// For as long as the worker lives.
    pub(super) fn run(&self, notes: Option<&OwnedFd>) {
        let Ok((stop, _never)) = UnixStream::pair() else { return };
        let ended = self.watch.run(stop.as_fd(), |told| self.told(told, notes));
        if let Err(e) = ended {
            say(&format!("changes in the backing directory are seen at opens only from now on: {e}"));
            self.sources.watch_ended(e.to_string());
        }
    }

    fn told(&self, told: Change, notes: Option<&OwnedFd>) {
        self.sources.note_told(told);
        match told {
            Change::File { dev, ino } => {
                self.tier.forget(self.tier.id(dev, ino));
                // What is closed is compared with what it was at its next open.
                let node = self.fs.nodes().find(&Inode { dev, ino, born_ns: 0 });
                if let Some(node) = node.filter(|node| node.is_open()) {
                    let_opener_look(&node);
                    drop_pages(notes, node.number);
                }
            }
            Change::Everything => self.drop_all(notes),
        }
    }

    /// Files that are not open are compared with what they were when they are opened next.
    fn drop_all(&self, notes: Option<&OwnedFd>) {
        for (number, _) in self.fs.nodes().open() {
            if let Ok(node) = self.fs.nodes().get(number) {
                self.tier.forget(self.tier.id(node.inode.dev, node.inode.ino));
                drop_pages(notes, number);
            }
        }
    }
}

/// Who has opened a file just now asks for its size next. If its attributes are made invalid meanwhile the kernel does not take
/// the answer, and the reader sees the file with the size that it had before the open (`fuse_change_attributes` in
/// fs/fuse/inode.c compares versions; `fuse_cache_read_iter` asks once). So that one goes first. Many events wait no longer than
/// one: for the later ones it is over by then.
fn let_opener_look(node: &Node) {
    let ago = node.opened_at().map(|opened| opened.elapsed());
    let left = ago.and_then(|ago| LOOK.checked_sub(ago));
    left.into_iter().for_each(std::thread::sleep);
}

/// Attributes and all pages. Without a guard they go at the next open.
fn drop_pages(notes: Option<&OwnedFd>, number: u64) {
    let _ = notes.map(|notes| guard::drop_pages(notes.as_fd(), number));
}

//! The thread that hears of changes below: what is held of the file is dropped, and the kernel told to drop its pages.
//!
//! It may wait for the kernel, which may wait for a reply to a read: hence a thread of its own, and never a session's.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use fuser::{INodeNo, Notifier};

use super::figures::Sources;
use crate::fs::Fs;
use crate::node::Inode;
use crate::serve::log::say;
use crate::tier::Tier;
use crate::watch::{Told, Watch};

/// Holds what it needs.
pub(super) struct Watcher {
    pub(super) watch: Watch,
    pub(super) fs: Arc<Fs>,
    pub(super) tier: Arc<Tier>,
    pub(super) sources: Sources,
}

impl Watcher {
    /// For as long as the worker lives.
    pub(super) fn run(&self, notify: &Notifier) {
        let Ok((stop, _never)) = UnixStream::pair() else { return };
        let ended = self.watch.run(stop.as_fd(), |told| self.told(told, notify));
        if let Err(e) = ended {
            say(&format!("changes below are seen at opens only from now on: {e}"));
            self.sources.watch_ended(e.to_string());
        }
    }

    fn told(&self, told: Told, notify: &Notifier) {
        self.sources.note_told(told);
        match told {
            Told::File { dev, ino } => {
                self.tier.forget(self.tier.id(dev, ino));
                if let Some(node) = self.fs.nodes().find(&Inode { dev, ino, born_ns: 0 }) {
                    drop_pages(notify, node.number);
                }
            }
            Told::Everything => self.drop_all(notify),
        }
    }

    /// Files that are not open are compared with what they were when they are opened next.
    fn drop_all(&self, notify: &Notifier) {
        for (number, _) in self.fs.nodes().open() {
            if let Ok(node) = self.fs.nodes().get(number) {
                self.tier.forget(self.tier.id(node.inode.dev, node.inode.ino));
                drop_pages(notify, number);
            }
        }
    }
}

/// Attributes and all pages. An error means that the kernel does not know the node, or that the connection ends.
fn drop_pages(notify: &Notifier, number: u64) {
    let _ = notify.inval_inode(INodeNo(number), 0, 0);
}

//! The thread that watches the backing directory. When a file changes, it drops the file's blocks and has the kernel drop its pages.
//!
//! The guard notifies the kernel, since that call may wait for pages that only this worker can read.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use eke_cachefs::fs::Fs;
use eke_cachefs::node::{Inode, Node};
use eke_cachefs::tier::Tier;
use eke_cachefs::watch::{Change, Watch};

use super::stats::Sources;
use crate::log::log_line;
use crate::supervisor::guard;

/// Longer than an open, its request for attributes and a first read take together.
const OPEN_WITHIN: Duration = Duration::from_millis(10);

/// A watch, and what a change concerns.
pub(super) struct Watcher {
    pub(super) watch: Watch,
    pub(super) fs: Arc<Fs>,
    pub(super) tier: Arc<Tier>,
    pub(super) sources: Sources,
}

impl Watcher {
    /// Runs as long as the worker lives.
    pub(super) fn run(&self, guard: Option<&OwnedFd>) {
        let Ok((stop, _never)) = UnixStream::pair() else { return };
        let ended = self.watch.run(stop.as_fd(), |change| self.handle(change, guard));
        if let Err(e) = ended {
            log_line(&format!("from now on changes in the backing directory are noticed at opens only: {e}"));
            self.sources.watch_ended(e.to_string());
        }
    }

    fn handle(&self, change: Change, guard: Option<&OwnedFd>) {
        self.sources.count_change(change);
        match change {
            Change::File { dev, ino } => {
                self.tier.forget(self.tier.id(dev, ino));
                // The next open of a closed file compares it with its former state anyway.
                let node = self.fs.nodes().find(&Inode { dev, ino, born_ns: 0 });
                if let Some(node) = node.filter(|node| node.is_open()) {
                    wait_for_opener(&node);
                    drop_pages(guard, node.number);
                }
            }
            Change::Everything => self.drop_all(guard),
        }
    }

    /// Drops all open files. The next open of a closed file compares it with its former state anyway.
    fn drop_all(&self, guard: Option<&OwnedFd>) {
        for (number, _) in self.fs.nodes().open() {
            if let Ok(node) = self.fs.nodes().get(number) {
                self.tier.forget(self.tier.id(node.inode.dev, node.inode.ino));
                drop_pages(guard, number);
            }
        }
    }
}

/// Waits until a program that has just opened the file has got its size. If the attributes became invalid in between, the kernel would
/// ignore the reply, and the program would see the size from before the open (`fuse_change_attributes` in fs/fuse/inode.c compares
/// versions; `fuse_cache_read_iter` requests the size once). Many events wait no longer than one: for the later ones the time is over.
fn wait_for_opener(node: &Node) {
    let ago = node.opened_at().map(|opened| opened.elapsed());
    let left = ago.and_then(|ago| OPEN_WITHIN.checked_sub(ago));
    left.into_iter().for_each(std::thread::sleep);
}

/// Has the kernel drop the node's attributes and pages. Without a guard the next open drops them.
fn drop_pages(guard: Option<&OwnedFd>, number: u64) {
    let _ = guard.map(|guard| guard::drop_pages(guard.as_fd(), number));
}

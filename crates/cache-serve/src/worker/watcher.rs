//! The thread that watches the backing directory. When a file changes, it drops the file's blocks and tells the kernel; so it does of names and
//! attributes, which the kernel keeps while they are reported.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use eke_cachefs::fs::Fs;
use eke_cachefs::node::{Access, Inode, Node};
use eke_cachefs::tier::{Freshness, Reporting, Tier};
use eke_cachefs::watch::{Change, Report, Watch};

use super::notices::{ANSWERED_WITHIN, Notices};
use super::stats::Sources;
use crate::log::log_line;

/// A watch, and what a change concerns.
pub(super) struct Watcher {
    pub(super) watch: Watch,
    pub(super) fs: Arc<Fs>,
    pub(super) tier: Arc<Tier>,
    pub(super) sources: Sources,
}

impl Watcher {
    /// Runs as long as the worker lives.
    pub(super) fn run(&self, notices: &Notices) {
        let Ok((stop, _never)) = UnixStream::pair() else { return };
        let ended = self.watch.run(stop.as_fd(), self.tier.coverage(), |change, report| {
            self.handle(&change, report, notices);
        });
        self.tier.coverage().end();
        self.fs.lifetimes().set_reported(false);
        if let Err(e) = ended {
            log_line(&format!("from now on changes in the backing directory are noticed at opens only: {e}"));
            self.sources.watch_ended(e.to_string());
        }
    }

    fn handle(&self, change: &Change, report: Report, notices: &Notices) {
        if report == Report::First {
            self.sources.count_change(change);
        }
        self.fs.lifetimes().note_change();
        match change {
            Change::File { dev, ino } => self.content(*dev, *ino, notices),
            Change::Attributes { dev, ino } => {
                self.node(*dev, *ino).into_iter().for_each(|node| notices.attributes(node.number));
            }
            Change::Name { dev, ino, name } => self.name((*dev, *ino), name, notices),
            Change::Everything => self.everything(notices),
        }
    }

    fn node(&self, dev: u64, ino: u64) -> Option<Arc<Node>> {
        self.fs.nodes().find(&Inode { dev, ino, born_ns: 0 })
    }

    fn content(&self, dev: u64, ino: u64, notices: &Notices) {
        // The watch is of the whole file system. Most of its files never get an id.
        self.tier.known_id(dev, ino).into_iter().for_each(|id| self.tier.forget(id));
        let Some(node) = self.node(dev, ino) else { return };
        if self.fs.is_in_use(&node) {
            wait_for_opener(&node);
            notices.content(node.number);
        } else {
            // The next open compares the file with its former state, and drops its pages if it must.
            notices.attributes(node.number);
        }
    }

    fn name(&self, (dev, ino): (u64, u64), name: &OsStr, notices: &Notices) {
        // Where names are not held, before Linux 6.2, a notice would also remove what is mounted on the name (`notice.rs`).
        if !self.watch.reports_names() {
            return;
        }
        if let Some(directory) = self.node(dev, ino) {
            notices.name(directory.number, name);
        }
    }

    /// Drops open files that differ from their former state. The next open of a closed file compares it anyway. So a user who makes
    /// more events than can be read costs others no blocks. Files on other mounts inside are not watched, and may wait for a server.
    fn everything(&self, notices: &Notices) {
        if self.watch.reports_content() {
            self.tier.coverage().begin();
        }
        // First, so that names are believed for a short time only, however long the rest takes.
        let were_held = notices.note_everything();
        for (number, _) in self.fs.nodes().open() {
            let Ok(node) = self.fs.nodes().get(number) else { continue };
            if !node.is_elsewhere() && self.has_changed(&node) {
                self.tier.forget(self.tier.id(node.inode.dev, node.inode.ino));
                notices.content(number);
            }
        }
        if were_held {
            notices.all_names();
        }
    }

    /// Also true if it cannot be told.
    fn has_changed(&self, node: &Node) -> bool {
        let file = {
            let open = node.descriptors();
            open.file(Access::Read).or_else(|| open.file(Access::Write))
        };
        let stamp = file.and_then(|file| file.fresh_stamp().ok());
        let id = self.tier.id(node.inode.dev, node.inode.ino);
        stamp.is_none_or(|stamp| self.tier.opened(id, stamp, || Reporting::Unwatched) == Freshness::Changed)
    }
}

/// Waits until a program that has just opened the file has got its size. If the attributes became invalid in between, the kernel would
/// ignore the reply, and the program would see the size from before the open (`fuse_change_attributes` in fs/fuse/inode.c compares
/// versions; `fuse_cache_read_iter` requests the size once). Many events wait no longer than one: for the later ones the time is over.
fn wait_for_opener(node: &Node) {
    let ago = node.opened_at().map(|opened| opened.elapsed());
    let left = ago.and_then(|ago| ANSWERED_WITHIN.checked_sub(ago));
    left.into_iter().for_each(std::thread::sleep);
}

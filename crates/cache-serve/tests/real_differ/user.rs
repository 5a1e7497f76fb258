//! The users of a mount: threads with their own ids, groups, umask, working directory and descriptors.
//!
//! The kernel keeps all of these per thread; only glibc makes them common to the process. POSIX locks belong to a table of descriptors,
//! so they conflict between users, too.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use rustix::fs::{Gid, Mode, OFlags, Uid, open};
use rustix::thread::{
    UnshareFlags, set_thread_groups, set_thread_res_gid, set_thread_res_uid, unshare_unsafe,
};

use super::allowed;
use super::op::{Op, Step, Via};
use super::perform::{Answer, Answered, Tree, perform};

/// A user's ids.
pub struct Ids {
    pub uid: u32,
    pub gid: u32,
    pub groups: &'static [u32],
    pub umask: u32,
}

/// Groups with several users.
pub const SHARED: [u32; 2] = [20_001, 20_002];

/// Root, and three users with common groups.
pub const USERS: [Ids; 4] = [
    Ids { uid: 0, gid: 0, groups: &[], umask: 0o022 },
    Ids { uid: 12_345, gid: 12_345, groups: &SHARED, umask: 0o002 },
    Ids { uid: 12_346, gid: 12_346, groups: &[SHARED[0]], umask: 0o067 },
    Ids { uid: 12_347, gid: 12_345, groups: &[SHARED[1]], umask: 0 },
];

/// A case's directory in each tree.
#[derive(Debug, Clone)]
pub struct Roots {
    pub mounted: PathBuf,
    pub backing: PathBuf,
    pub plain: PathBuf,
}

/// The results in both trees; `None` if the operation was not done in the plain one.
pub type Both = (Answered, Option<Answered>);

enum Order {
    Begin(Roots),
    Do(Step),
    End,
}

/// One user's thread.
pub struct User {
    orders: Sender<Order>,
    answers: Receiver<Both>,
}

impl User {
    /// Starts number `user` of [`USERS`].
    pub fn start(user: usize) -> Self {
        let (orders, taken) = channel();
        let (answer, answers) = channel();
        std::thread::spawn(move || {
            become_user(&USERS[user]);
            act_all(user, &taken, &answer);
        });
        Self { orders, answers }
    }

    fn order(&self, order: Order) -> Both {
        self.orders.send(order).unwrap();
        match self.answers.recv_timeout(Duration::from_secs(60)) {
            Ok(both) => both,
            Err(RecvTimeoutError::Timeout) => panic!("a system call has not come back for a minute"),
            Err(RecvTimeoutError::Disconnected) => panic!("a user's thread panicked"),
        }
    }

    /// Opens the trees of a case.
    pub fn begin(&self, roots: Roots) {
        let _ = self.order(Order::Begin(roots));
    }

    /// Does a step in both trees.
    pub fn act(&self, step: &Step) -> Both {
        self.order(Order::Do(step.clone()))
    }

    /// Closes the trees and all open files.
    pub fn end(&self) {
        let _ = self.order(Order::End);
    }
}

#[expect(unsafe_code, reason = "unshare(2) of descriptors is unsafe in rustix")]
fn become_user(ids: &Ids) {
    // SAFETY: this thread uses no descriptor that was opened before.
    unsafe {
        unshare_unsafe(UnshareFlags::FILES | UnshareFlags::FS).unwrap();
        libc::close_range(3, u32::MAX, 0);
    }
    let groups: Vec<_> = ids.groups.iter().map(|g| Gid::from_raw(*g)).collect();
    set_thread_groups(&groups).unwrap();
    let (uid, gid) = (Uid::from_raw(ids.uid), Gid::from_raw(ids.gid));
    set_thread_res_gid(gid, gid, gid).unwrap();
    set_thread_res_uid(uid, uid, uid).unwrap();
}

fn act_all(user: usize, orders: &Receiver<Order>, answers: &Sender<Both>) {
    let mut trees: Option<[Tree; 3]> = None;
    for order in orders {
        let both = match order {
            Order::Begin(roots) => {
                rustix::process::umask(Mode::from_raw_mode(USERS[user].umask));
                trees = Some([roots.mounted, roots.backing, roots.plain].map(|r| Tree::new(root(r))));
                (Ok(Answer::Done), None)
            }
            Order::Do(step) => both(trees.as_mut().unwrap(), &step),
            Order::End => {
                trees = None;
                (Ok(Answer::Done), None)
            }
        };
        if answers.send(both).is_err() {
            return;
        }
    }
}

fn root(path: PathBuf) -> OwnedFd {
    open(&path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn both([mounted, backing, plain]: &mut [Tree; 3], step: &Step) -> Both {
    let op = allowed::replacement(&step.op);
    let answered = perform(if step.via == Via::Mount { mounted } else { backing }, &op);
    if step.via == Via::Mount && allowed::refused(&op, &answered) {
        plain.forget(&op);
        return (answered, None);
    }
    if matches!(op, Op::Chdir { .. }) && step.via == Via::Mount {
        let _ = perform(backing, &op);
    }
    let plain = perform(plain, &op);
    (answered, Some(plain))
}

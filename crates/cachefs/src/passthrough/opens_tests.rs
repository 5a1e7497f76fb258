use std::cell::RefCell;
use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::rc::Rc;

use proptest::prelude::*;

use super::*;

/// The kernel's side: registered ids, and the next number.
#[derive(Debug, Default)]
struct Kernel {
    live: BTreeSet<u32>,
    next: u32,
    refuses: bool,
}

#[derive(Debug, Clone, Default)]
struct Reply(Rc<RefCell<Kernel>>);

#[derive(Debug)]
struct Id {
    kernel: Rc<RefCell<Kernel>>,
    number: u32,
}

impl Drop for Id {
    fn drop(&mut self) {
        assert!(self.kernel.borrow_mut().live.remove(&self.number), "closed twice");
    }
}

impl RegisteredId for Id {
    fn leave(self) {
        std::mem::forget(self);
    }
}

impl Register for Reply {
    type Id = Id;

    fn register(&self, _: BorrowedFd<'_>) -> io::Result<u32> {
        let mut kernel = self.0.borrow_mut();
        if kernel.refuses {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        kernel.next += 1;
        let next = kernel.next;
        kernel.live.insert(next);
        Ok(next)
    }

    fn own(&self, number: u32) -> Id {
        Id { kernel: Rc::clone(&self.0), number }
    }
}

fn open(opens: &Opens<Id>, node: u64, reply: &Reply, way: DataPath) -> Option<u32> {
    let file = tempfile::tempfile().unwrap();
    opens.open(node, reply, Some(file.as_fd()), || way, |_| {}).map(|id| id.number)
}

#[test]
fn opens_of_a_node_have_one_way_and_one_id_until_the_last_release() {
    let (reply, opens) = (Reply::default(), Opens::new(None));
    assert_eq!(open(&opens, 5, &reply, DataPath::Passthrough), Some(1));
    assert_eq!(open(&opens, 5, &reply, DataPath::Cached), Some(1));
    assert_eq!(open(&opens, 6, &reply, DataPath::Cached), None);
    assert_eq!(open(&opens, 6, &reply, DataPath::Passthrough), None);
    opens.release(5);
    assert_eq!((opens.passthrough(), reply.0.borrow().live.len()), (1, 1));
    opens.release(5);
    assert_eq!((opens.passthrough(), reply.0.borrow().live.len()), (0, 0));
    assert_eq!(open(&opens, 5, &reply, DataPath::Cached), None);
}

#[test]
fn the_next_worker_answers_with_the_same_id_and_forgets_what_was_closed_meanwhile() {
    let (reply, file) = (Reply::default(), tempfile::tempfile().unwrap());
    let first = Opens::new(Some(file.try_clone().unwrap()));
    assert_eq!(open(&first, 5, &reply, DataPath::Passthrough), Some(1));
    assert_eq!(open(&first, 6, &reply, DataPath::Passthrough), Some(2));
    assert_eq!(open(&first, 7, &reply, DataPath::Cached), None);
    drop(first);
    let second = Opens::new(Some(file));
    second.adopt([(5, 1), (7, 1)]);
    assert_eq!(second.passthrough(), 1);
    assert_eq!(open(&second, 5, &reply, DataPath::Cached), Some(1), "as the earlier open");
    assert_eq!(open(&second, 7, &reply, DataPath::Passthrough), None, "it is open cached");
    (0..2).for_each(|_| second.release(5));
    assert!(!reply.0.borrow().live.contains(&1));
    assert_eq!(open(&second, 6, &reply, DataPath::Cached), None);
}

#[test]
fn a_refusal_is_reported_and_the_open_is_cached() {
    let (reply, opens) = (Reply::default(), Opens::new(None));
    reply.0.borrow_mut().refuses = true;
    let (file, refusal) = (tempfile::tempfile().unwrap(), RefCell::new(None));
    let id = opens.open(
        5,
        &reply,
        Some(file.as_fd()),
        || DataPath::Passthrough,
        |e| *refusal.borrow_mut() = Some(e.kind()),
    );
    assert!(id.is_none());
    assert_eq!(*refusal.borrow(), Some(io::ErrorKind::PermissionDenied));
    reply.0.borrow_mut().refuses = false;
    assert_eq!(open(&opens, 5, &reply, DataPath::Passthrough), None, "it is open cached");
}

proptest! {
    /// As in the kernel: an open inode has a mode, and an open in another mode is an error.
    #[test]
    fn no_open_is_ever_of_another_mode(acts in proptest::collection::vec((0u64..4, 0u8..4), 0..200)) {
        let (reply, file) = (Reply::default(), tempfile::tempfile().unwrap());
        let mut opens = Opens::new(Some(file.try_clone().unwrap()));
        let mut modes: HashMap<u64, (u64, Option<u32>)> = HashMap::new();
        for (node, act) in acts {
            match act {
                0 | 1 => {
                    let id = open(&opens, node, &reply, if act == 0 { DataPath::Cached } else { DataPath::Passthrough });
                    let mode = modes.entry(node).or_insert((0, id));
                    prop_assert_eq!(mode.1, id);
                    mode.0 += 1;
                }
                2 => if let Some((count, _)) = modes.get_mut(&node) {
                    *count -= 1;
                    let closed = *count == 0;
                    opens.release(node);
                    if closed { modes.remove(&node); }
                },
                _ => {
                    drop(opens);
                    opens = Opens::new(Some(file.try_clone().unwrap()));
                    opens.adopt(modes.iter().map(|(node, (count, _))| (*node, *count)));
                }
            }
            prop_assert!(modes.values().filter_map(|m| m.1).all(|id| reply.0.borrow().live.contains(&id)));
        }
    }
}

#[test]
fn an_open_without_a_backing_file_is_cached_and_counted() {
    let (reply, opens) = (Reply::default(), Opens::new(None));
    assert!(opens.open(5, &reply, None, || DataPath::Passthrough, |_| {}).is_none());
    assert_eq!(
        open(&opens, 5, &reply, DataPath::Passthrough),
        None,
        "the node has its way until the last release"
    );
    opens.release(5);
    assert_eq!(open(&opens, 5, &reply, DataPath::Passthrough), None, "one is open still");
    opens.release(5);
    opens.release(5);
    assert_eq!(open(&opens, 5, &reply, DataPath::Passthrough), Some(1));
}

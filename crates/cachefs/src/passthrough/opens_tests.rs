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
    let new = NewOpen { node, reply, backing: Some(file.as_fd()), leaves: false };
    opens.open(&new, |_| way, |_| {}).map(|id| id.number)
}

/// An open that may leave a mapping.
fn open_to_map(opens: &Opens<Id>, node: u64, reply: &Reply) -> Option<u32> {
    let file = tempfile::tempfile().unwrap();
    let new = NewOpen { node, reply, backing: Some(file.as_fd()), leaves: true };
    opens.open(&new, |_| DataPath::Passthrough, |_| {}).map(|id| id.number)
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
fn ids_of_an_earlier_worker_are_closed_at_the_next_open_of_any_file() {
    let (reply, file) = (Reply::default(), tempfile::tempfile().unwrap());
    let first = Opens::new(Some(file.try_clone().unwrap()));
    let ids = [5, 6, 7].map(|node| open(&first, node, &reply, DataPath::Passthrough));
    assert_eq!(ids, [Some(1), Some(2), Some(3)]);
    drop(first);
    let second = Opens::new(Some(file.try_clone().unwrap()));
    second.adopt([(5, 1), (6, 1)]);
    second.release(5);
    assert_eq!(reply.0.borrow().live, BTreeSet::from([1, 2, 3]), "no reply to close them by");
    open(&second, 9, &reply, DataPath::Cached);
    assert_eq!(reply.0.borrow().live, BTreeSet::from([2]));
    drop(second);
    let (_, kept) = Slots::new(Some(file));
    assert_eq!(kept.iter().map(|k| k.node).collect::<Vec<_>>(), [6]);
}

#[test]
fn a_mapping_that_may_be_left_is_known_until_it_cannot_be() {
    let (reply, file) = (Reply::default(), tempfile::tempfile().unwrap());
    let first = Opens::new(Some(file.try_clone().unwrap()));
    open(&first, 5, &reply, DataPath::Passthrough);
    assert!(!first.leaves(5) && first.is_passthrough(5));
    open_to_map(&first, 5, &reply);
    open_to_map(&first, 6, &reply);
    (0..2).for_each(|_| first.release(5));
    first.release(6);
    assert!(first.leaves(5) && first.leaves(6) && !first.is_passthrough(5) && first.passthrough() == 0);
    assert!(reply.0.borrow().live.is_empty());

    // The next worker knows, too, also if it uses passthrough again.
    let second = Opens::new(Some(file.try_clone().unwrap()));
    second.adopt([]);
    assert!(second.leaves(5) && second.leaves(6));
    open(&second, 5, &reply, DataPath::Passthrough);
    second.release(5);
    assert!(second.leaves(5));

    // One that died after it had counted an open, before it registered the file.
    drop(second);
    let second = Opens::new(Some(file.try_clone().unwrap()));
    second.adopt([(6, 1)]);
    assert_eq!((open_to_map(&second, 6, &reply), second.leaves(6)), (None, true), "its id is closed");
    (0..2).for_each(|_| second.release(6));
    open(&second, 5, &reply, DataPath::Cached);
    second.forget(6);
    assert!(!second.leaves(5) && !second.leaves(6));
    assert!(Slots::new(Some(file)).1.is_empty());
}

#[test]
fn a_node_of_which_a_mapping_may_be_left_needs_no_other_slot() {
    let (reply, file) = (Reply::default(), tempfile::tempfile().unwrap());
    let opens = Opens::new(Some(file.try_clone().unwrap()));
    open_to_map(&opens, 5, &reply);
    opens.release(5);
    while opens.lock().slots.put(6, 9, false).is_some() {}
    assert_eq!(open(&opens, 7, &reply, DataPath::Passthrough), None, "no slot is free");
    opens.release(7);
    assert_eq!(open(&opens, 5, &reply, DataPath::Passthrough), Some(3));
    let of_5: Vec<u32> = Slots::new(Some(file)).1.iter().filter(|k| k.node == 5).map(|k| k.id).collect();
    assert_eq!(of_5, [3]);
}

#[test]
fn a_refusal_is_reported_and_the_open_is_cached() {
    let (reply, opens) = (Reply::default(), Opens::new(None));
    reply.0.borrow_mut().refuses = true;
    let (file, refusal) = (tempfile::tempfile().unwrap(), RefCell::new(None));
    let new = NewOpen { node: 5, reply: &reply, backing: Some(file.as_fd()), leaves: false };
    let id = opens.open(&new, |_| DataPath::Passthrough, |e| *refusal.borrow_mut() = Some(e.kind()));
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
    let new = NewOpen { node: 5, reply: &reply, backing: None, leaves: false };
    assert!(opens.open(&new, |_| DataPath::Passthrough, |_| {}).is_none());
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

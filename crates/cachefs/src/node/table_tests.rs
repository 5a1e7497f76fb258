use std::sync::Mutex;

use super::*;
use crate::node::NoLedger;

const DEV: u64 = 7;

fn inode(ino: u64, born_ns: i128) -> Inode {
    Inode { dev: DEV, ino, born_ns }
}

fn table(ledger: Arc<dyn Ledger>) -> Table {
    Table::new(Arc::new(Node::new(ROOT, inode(2, 1), 0)), ledger)
}

fn entry(parent: u64, name: &str) -> DirEntry {
    DirEntry::new(parent, OsStr::new(name))
}

/// The records, as text.
#[derive(Debug, Default)]
struct Notes(Mutex<Vec<String>>);

impl Ledger for Notes {
    fn record(&self, entry: Entry<'_>) {
        self.0.lock().unwrap().push(match entry {
            Entry::Known { node, parent, name, generation, .. } => {
                format!("{node} is {parent}/{} {generation}", name.to_str().unwrap())
            }
            Entry::Forgotten { node } => format!("{node} forgotten"),
            Entry::Opened { node } => format!("{node} opened"),
            Entry::Released { node } => format!("{node} released"),
        });
    }

    fn keep(&self, _: u64, _: std::os::fd::BorrowedFd<'_>) -> std::io::Result<()> {
        Ok(())
    }

    fn drop_kept(&self, _: u64) {}
}

#[test]
fn a_node_has_the_backing_inodes_number_unless_that_means_something_else() {
    let mut table = table(Arc::new(NoLedger));
    assert_eq!(table.learn(inode(12, 1), entry(ROOT, "a")).number, 12);
    let odd = [inode(1, 1), inode(FOREIGN + 5, 1), Inode { dev: 8, ino: 12, born_ns: 1 }];
    let numbers = odd.map(|i| table.learn(i, entry(ROOT, "x")).number);
    assert_eq!(numbers, [FOREIGN, FOREIGN + 1, FOREIGN + 2]);
    assert_eq!(table.learn(odd[2], entry(ROOT, "x")).number, FOREIGN + 2);
    assert_eq!(table.find(&inode(2, 1)).unwrap().number, ROOT);
}

#[test]
fn a_node_is_known_until_all_lookups_are_forgotten() {
    let notes = Arc::new(Notes::default());
    let mut table = table(Arc::clone(&notes) as Arc<dyn Ledger>);
    table.learn(inode(12, 1), entry(ROOT, "a"));
    table.learn(inode(12, 1), entry(ROOT, "a"));
    assert!(table.forget(12, 1).is_none());
    assert_eq!(table.forget(12, 1).unwrap().number, 12);
    assert!(table.get(12).is_none() && table.forget(12, 1).is_none() && table.forget(ROOT, 9).is_none());
    assert_eq!(*notes.0.lock().unwrap(), ["12 is 1/a 0", "12 forgotten"]);
}

#[test]
fn a_directory_stays_while_something_in_it_is_known() {
    let mut table = table(Arc::new(NoLedger));
    table.learn(inode(10, 1), entry(ROOT, "dir"));
    table.learn(inode(11, 1), entry(10, "inner"));
    table.learn(inode(12, 1), entry(11, "file"));
    assert!(table.forget(10, 1).is_none() && table.forget(11, 1).is_none());
    assert!(table.get(10).is_some() && table.get(11).is_some());
    table.forget(12, 1);
    assert_eq!(table.len(), 1, "{table:?}");
}

#[test]
fn a_number_that_is_used_again_has_another_generation_and_goes_on_counting() {
    let mut table = table(Arc::new(NoLedger));
    let first = table.learn(inode(12, 100), entry(ROOT, "a"));
    first.count_open(true);
    let second = table.learn(inode(12, 200), entry(ROOT, "a"));
    assert_eq!((second.generation, second.is_open()), (1, true));
    // An unknown birth proves nothing; a lost name does.
    assert_eq!(table.learn(inode(12, 0), entry(ROOT, "a")).generation, 1);
    second.set_gone();
    assert_eq!(table.learn(inode(12, 0), entry(ROOT, "b")).generation, 2);
    assert!(table.forget(12, 3).is_none());
    assert!(table.forget(12, 1).is_some());
}

#[test]
fn a_directory_that_the_kernel_knows_is_not_found_by_another_mount_elsewhere() {
    let mut table = table(Arc::new(NoLedger));
    let (dir, first) = (inode(12, 1), View::HOME.next());
    let (pub1, pub2, second) = (entry(10, "pub"), entry(11, "pub"), first.next());
    assert!(table.may_be_at(&dir, &pub1, first), "it is not known");
    table.learn(dir, pub1.clone());
    table.note_view(12, first);
    assert!(!table.may_be_at(&dir, &pub2, second) && !table.may_be_at(&dir, &pub2, View::HOME));
    assert!(table.may_be_at(&dir, &pub2, first), "it was renamed");
    assert!(table.may_be_at(&dir, &pub1, second), "it was mounted again at the same place");
    assert!(!table.may_be_at(&inode(2, 1), &pub2, View::HOME), "the root has no other place");
    assert!(table.may_be_at(&inode(12, 2), &pub2, second), "the number was used again");
    table.learn(inode(13, 1), entry(12, "in"));
    table.forget(12, 1);
    assert!(table.may_be_at(&dir, &pub2, second), "the kernel has forgotten it");

    table.restore(&known(20, 10, "of a dead worker"));
    let restored = |view| table.may_be_at(&inode(20, 1), &pub2, view);
    assert_eq!([View::HOME, first].map(restored), [true, false]);
    assert!(table.may_be_at(&inode(20, 1), &entry(10, "of a dead worker"), first));
}

#[test]
fn entries_are_found_by_their_names() {
    let mut table = table(Arc::new(NoLedger));
    for (n, name) in ["a", "b", "a"].into_iter().enumerate() {
        table.learn(inode(12 + n as u64, 1), entry(10 + n as u64, name));
    }
    table.get(14).unwrap().set_elsewhere(true);
    let mut found = table.entries_named(&HashSet::from([OsStr::new("a"), OsStr::new("c")]));
    found.sort_by_key(|(entry, _)| entry.parent);
    assert_eq!(found, [(entry(10, "a"), false), (entry(12, "a"), true)]);
}

#[test]
fn entries_below_directories_are_found_also_if_names_form_a_ring() {
    let mut table = table(Arc::new(NoLedger));
    for (number, parent, name) in
        [(12, ROOT, "a"), (13, 12, "b"), (14, 13, "c"), (15, ROOT, "d"), (16, 17, "e"), (17, 16, "f")]
    {
        table.learn(inode(number, 1), entry(parent, name));
    }
    let below = |top: u64| {
        let found = table.entries_below(&HashSet::from([top]));
        let mut names: Vec<_> = found.iter().map(|entry| entry.name.to_str().unwrap()).collect();
        names.sort_unstable();
        names.concat()
    };
    assert_eq!([12, 13, 15, 17, 99].map(below), ["abc", "bc", "d", "ef", ""]);
}

#[test]
fn an_inode_with_the_device_and_number_of_a_removed_one_gets_a_number_of_its_own() {
    let mut table = table(Arc::new(NoLedger));
    let there = Inode { dev: DEV + 1, ..inode(256, 5) };
    let removed = table.learn(there, entry(ROOT, "snapshot"));
    table.part(&removed);
    assert!(table.find(&there).is_none() && table.get(removed.number).is_some());
    let next = table.learn(there, entry(ROOT, "snapshot"));
    assert_ne!(next.number, removed.number);
    assert!(table.forget(removed.number, 1).is_some());
    assert_eq!(table.find(&there).map(|node| node.number), Some(next.number));
    table.part(&removed);
    assert!(table.find(&there).is_some(), "it was parted from already");
}

#[test]
fn a_file_with_many_links_is_found_by_those_that_are_left() {
    let notes = Arc::new(Notes::default());
    let mut table = table(Arc::clone(&notes) as Arc<dyn Ledger>);
    for n in 0..=MOST_NAMES {
        table.learn(inode(12, 1), entry(ROOT, &n.to_string()));
    }
    assert_eq!(table.names(12).len(), MOST_NAMES);
    notes.0.lock().unwrap().clear();
    table.remove_name(12, ROOT, OsStr::new("3"));
    assert_eq!(table.last_name(12), Some(entry(ROOT, "16")));
    table.remove_name(12, ROOT, OsStr::new("16"));
    assert_eq!(*notes.0.lock().unwrap(), ["12 is 1/15 0"]);
}

fn known(node: u64, parent: u64, name: &str) -> Entry<'_> {
    Entry::Known { node, parent, name: OsStr::new(name), dev: DEV, ino: node, born_ns: 1, generation: 3 }
}

#[test]
fn nodes_of_a_dead_worker_are_kept_when_in_doubt() {
    let mut table = table(Arc::new(NoLedger));
    // A child may come before its directory.
    let entries = [known(12, 10, "file"), known(10, 1, "dir"), Entry::Opened { node: 12 }, known(13, 1, "b")];
    entries.iter().for_each(|e| table.restore(e));
    table.restore(&Entry::Forgotten { node: 13 });
    table.restored();
    assert!(table.get(13).is_none());
    let file = table.get(12).unwrap();
    assert_eq!((file.generation, file.is_open()), (3, true));
    // The number of the dead worker's lookups is unknown, so the node may still be needed.
    assert!(table.forget(12, 5).is_none() && table.get(12).is_some());
    assert!(table.forget(12, 1).is_none() && table.forget(10, 1).is_none());
    for n in 0..=MOST_DOUBTFUL as u64 {
        table.restore(&known(1000 + n, 1, "x"));
        table.forget(1000 + n, 1);
    }
    // By now it is not; nodes requested meanwhile are.
    assert!(!table.nodes.contains_key(&12) && !table.nodes.contains_key(&10));
    assert!(table.nodes.contains_key(&2024));
}

/// The ledger does not tell what a file was opened for, and a mapping for writing may be left of it.
#[test]
fn a_file_that_is_open_since_an_earlier_worker_may_be_written() {
    let mut table = table(Arc::new(NoLedger));
    let entries =
        [known(12, 1, "a"), known(13, 1, "b"), Entry::Opened { node: 12 }, Entry::Opened { node: 13 }];
    entries.iter().for_each(|e| table.restore(e));
    table.restore(&Entry::Released { node: 13 });
    table.restored();
    let (open, closed) = (table.get(12).unwrap(), table.get(13).unwrap());
    assert_eq!((open.may_be_written(), closed.may_be_written()), (true, false));
    open.count_open(false);
    assert!(!open.may_be_written(), "it was closed");
    open.count_open(true);
    assert!(!open.may_be_written(), "only to be read");
    open.count_writer(true);
    assert!(open.may_be_written());
}

/// A removed file's descriptor keeps its disk space.
#[test]
fn a_removed_file_of_a_dead_workers_is_dropped_when_the_kernel_forgets_it() {
    let mut table = table(Arc::new(NoLedger));
    [known(12, 1, "a"), known(13, 1, "b"), known(14, 1, "c")].iter().for_each(|e| table.restore(e));
    table.restored();
    table.get(12).unwrap().set_gone();
    assert_eq!(table.forget(12, 1).unwrap().number, 12);

    // The number was used again.
    table.learn(inode(13, 2), entry(ROOT, "new")).set_gone();
    assert_eq!(table.forget(13, 2).unwrap().generation, 4);

    let open = table.get(14).unwrap();
    open.set_gone();
    open.count_open(true);
    assert!(table.forget(14, 1).is_none(), "the kernel does not forget what is open");
}

#[test]
fn memory_is_counted_as_it_comes_and_goes() {
    let mut table = table(Arc::new(NoLedger));
    for n in 0..2000 {
        table.learn(inode(100 + n, 1), entry(ROOT, "a name"));
        table.add_name(100 + n, entry(ROOT, "another one, which is longer"));
    }
    let most = table.memory().0;
    assert!(most > 2000 * (size_of::<Node>() + size_of::<NodeRecord>()) as u64, "{most}");
    // Another inode under the number; removed names; more names than are kept.
    table.learn(inode(100, 2), entry(ROOT, "new"));
    (0..2000).for_each(|n| table.remove_name(100 + n, ROOT, OsStr::new("a name")));
    (0..=MOST_NAMES).for_each(|n| table.add_name(101, entry(ROOT, &n.to_string())));
    table.restore(&known(102, ROOT, "of an earlier worker"));
    table.restore(&Entry::Forgotten { node: 102 });
    assert_eq!(table.names_bytes, table.nodes.values().flat_map(|k| &k.names).map(memory_of).sum::<usize>());
    (0..2000).for_each(|n| drop(table.forget(100 + n, 2)));
    assert_eq!((table.len(), table.names_bytes), (1, 0));
    assert!(table.memory().0 < most / 10, "{} of {most}", table.memory().0);
}

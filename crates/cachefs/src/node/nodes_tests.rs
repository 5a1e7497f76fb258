use std::fs;

use eke_testkit::wait::wait_for;
use rustix::fs::{CWD, Mode, openat};
use tempfile::TempDir;

use super::*;
use crate::node::NoLedger;

fn nodes(dir: &TempDir, most: usize) -> Nodes {
    let root = openat(CWD, dir.path(), OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
    Nodes { paths: Paths::new(most), ..Nodes::new(root, Arc::new(NoLedger)).unwrap() }
}

fn learn(nodes: &Nodes, parent: &Arc<Node>, name: &str) -> Arc<Node> {
    let dir = nodes.path(parent).unwrap();
    nodes.learn(&at::stat_at(dir, OsStr::new(name)).unwrap(), parent.number, OsStr::new(name)).unwrap()
}

#[test]
fn descriptors_are_bounded_and_come_back_when_needed() {
    let dir = TempDir::new().unwrap();
    let names: Vec<_> = (0..200).map(|n| n.to_string()).collect();
    names.iter().for_each(|n| fs::create_dir(dir.path().join(n)).unwrap());
    let nodes = nodes(&dir, 64);
    let root = nodes.get(ROOT).unwrap();
    let known: Vec<_> = names.iter().map(|n| learn(&nodes, &root, n)).collect();
    let inodes: Vec<_> = known.iter().map(|n| at::stat(nodes.path(n).unwrap()).unwrap().stx_ino).collect();
    assert_eq!(known.iter().filter(|n| n.descriptors().path.is_some()).count(), 64);
    assert!(known.iter().zip(inodes).all(|(n, ino)| n.number == ino));
    // A node without a name keeps its descriptor, whatever others need.
    nodes.path(&known[0]).unwrap();
    fs::remove_dir(dir.path().join("0")).unwrap();
    known[0].set_gone();
    known[1..].iter().for_each(|n| drop(nodes.path(n).unwrap()));
    assert_eq!(at::stat(nodes.path(&known[0]).unwrap()).unwrap().stx_ino, known[0].number);
    assert_eq!(nodes.footprint().descriptors, 65, "and is counted");
    // The root's is none of these.
    let are_open = || known.iter().filter(|n| n.descriptors().path.is_some()).count();
    assert_eq!(are_open(), 65);
    nodes.close_path(&known[0]);
    assert_eq!((nodes.footprint().descriptors, are_open()), (64, 64));
}

#[test]
fn a_node_that_kept_its_name_after_all_is_closed_for_others_again() {
    let dir = TempDir::new().unwrap();
    let names: Vec<_> = (0..200).map(|n| n.to_string()).collect();
    names.iter().for_each(|n| fs::create_dir(dir.path().join(n)).unwrap());
    let nodes = nodes(&dir, 64);
    let root = nodes.get(ROOT).unwrap();
    let known: Vec<_> = names.iter().map(|n| learn(&nodes, &root, n)).collect();
    let open = |these: &[Arc<Node>]| these.iter().for_each(|n| drop(nodes.path(n).unwrap()));
    open(&known[..60]);
    known[..60].iter().for_each(|n| assert!(nodes.keep(n).unwrap()));
    open(&known[60..]);
    assert_eq!(nodes.footprint().descriptors, 60 + 64);
    known[..60].iter().for_each(|n| nodes.unkeep(n));
    nodes.close_unused();
    open(&known);
    assert_eq!(nodes.footprint().descriptors, 64);
}

#[test]
fn a_node_is_found_where_it_is_or_not_at_all() {
    let dir = TempDir::new().unwrap();
    fs::create_dir_all(dir.path().join("a/b")).unwrap();
    fs::create_dir(dir.path().join("a/b/file")).unwrap();
    let nodes = nodes(&dir, 64);
    let chain = ["a", "b", "file"].iter().fold(vec![nodes.get(ROOT).unwrap()], |mut chain, name| {
        chain.push(learn(&nodes, &chain[chain.len() - 1], name));
        chain
    });
    let close = || chain[1..].iter().for_each(|n| n.descriptors().path = None);
    let is_stale = |e: io::Error| e.raw_os_error() == Some(libc::ESTALE);
    let stale = |node: &Arc<Node>| nodes.path(node).is_err_and(is_stale);
    close();
    assert!(nodes.path(&chain[3]).is_ok());
    close();
    fs::rename(dir.path().join("a/b"), dir.path().join("b")).unwrap();
    assert!(stale(&chain[3]) && !stale(&chain[1]));
    fs::create_dir_all(dir.path().join("a/b/file")).unwrap();
    assert!(stale(&chain[3]), "another directory has the name");
    // A lookup by the new name finds it again, and with it what is inside.
    learn(&nodes, &chain[0], "b");
    assert!(nodes.path(&chain[3]).is_ok());
}

#[test]
fn a_directory_is_asked_about_case_until_it_has_told() {
    let dir = TempDir::new().unwrap();
    let root = nodes(&dir, 64).get(ROOT).unwrap();
    assert!(root.ignores_case(|| None), "unknown");
    assert!(!root.ignores_case(|| Some(false)));
    assert!(!root.ignores_case(|| panic!("it is known")));
}

/// As one in the place of a removed one, with its number: the kernel must not show the former one's target.
#[test]
fn a_link_without_birth_that_has_changed_is_another_inode() {
    let dir = TempDir::new().unwrap();
    let mut nodes = nodes(&dir, 64);
    nodes.submounts = Submounts::new(None).over_overlay(true);
    std::os::unix::fs::symlink("target", dir.path().join("link")).unwrap();
    fs::File::create_new(dir.path().join("file")).unwrap();
    let root = nodes.get(ROOT).unwrap();
    let generations = || ["link", "file"].map(|name| learn(&nodes, &root, name).generation);
    assert_eq!([generations(), generations()], [[0, 0], [0, 0]]);
    // Times are those of the last tick of a clock.
    wait_for("another time of change", || {
        for name in ["link", "file"] {
            let (owner, link) = (rustix::process::geteuid(), rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
            rustix::fs::chownat(CWD, dir.path().join(name), Some(owner), None, link).unwrap();
        }
        let [link, file] = generations();
        assert_eq!(file, 0);
        link == 1
    });
}

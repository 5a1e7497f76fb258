//! `eke lab retrain`, which the agent starts.

use eke_linux::Root;
use eke_swap::retrain::{Record, begin};
use eke_testkit::tree;

use crate::common::eke;

#[test]
fn it_writes_the_outcome_for_its_parent_alone() {
    let dir = tempfile::tempdir().unwrap();
    tree::put(dir.path(), "proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n");
    tree::put(dir.path(), "proc/self/oom_score_adj", "0\n");
    let root = Root::at(dir.path());
    begin(&root, 1, 2, None).unwrap();
    let words = |agent: u32| {
        let root = dir.path().display().to_string();
        eke(&["--root", &root, "lab", "retrain", "--end-with", &agent.to_string()])
    };
    let outcome = || Record::load(&root).unwrap().outcome;
    let foreign = words(1);
    assert_eq!((foreign.status, outcome()), (Some(1), String::new()), "{}", foreign.shown());
    assert!(
        foreign.stderr.contains("no dictionary is trained: process 1 is not the parent"),
        "{}",
        foreign.shown()
    );
    let done = words(std::process::id());
    let expected = "The dictionary stays as it is: no swap device of eke's is in use.";
    assert_eq!((done.status, outcome().as_str()), (Some(0), expected), "{}", done.shown());
}

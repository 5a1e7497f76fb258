//! Beside an agent that does not answer.

use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;

use eke_testkit::fake_kernel::FakeKernel;

use crate::common::eke;

/// Below a directory in which an agent listens and accepts nobody: the kernel does, into its queue.
fn beside_a_hung_agent() -> (Arc<FakeKernel>, UnixListener) {
    let machine = FakeKernel::new();
    let socket = machine.dir().join("run/eke/agent.sock");
    std::fs::create_dir_all(socket.parent().unwrap()).unwrap();
    let agent = UnixListener::bind(socket).unwrap();
    (machine, agent)
}

#[test]
fn beside_an_agent_that_hangs_the_numbers_are_those_of_the_machine() {
    let (machine, _agent) = beside_a_hung_agent();
    let root = machine.dir().display().to_string();
    let verbs: [&[&str]; 5] = [&["status"], &["status", "--json"], &[], &["doctor"], &["metrics"]];
    let [status, json, bare, doctor, metrics] = std::thread::scope(|scope| {
        let root = root.as_str();
        let started = verbs.map(|verb| scope.spawn(move || eke(&[&["--root", root], verb].concat())));
        started.map(|verb| verb.join().unwrap())
    });
    assert_eq!(status.status, Some(3), "{}", status.shown());
    assert!(status.stdout.contains("the agent does not answer") && status.stdout.contains("available;"));
    assert!(status.stderr.contains("within 5 s") && status.stderr.contains("`eke down` ends it"));
    assert_eq!(json.status, Some(3), "{}", json.shown());
    let document = json.json();
    assert!(document["agent"].is_null() && document["model"]["ram"].as_u64() > Some(0), "{}", json.shown());
    assert!(document["agent_silent"].as_str().unwrap().contains("does not answer"), "{}", json.shown());
    for shown in [bare, doctor] {
        assert!(shown.status == Some(0) && shown.stdout.contains("does not answer"), "{}", shown.shown());
    }
    assert!(metrics.status == Some(0) && metrics.stdout.contains("eke_agent_up 0\n"), "{}", metrics.shown());
    assert!(metrics.stderr.contains("does not answer"), "{}", metrics.shown());
}

#[test]
fn an_agent_whose_queue_is_full_is_not_called_missing() {
    let (machine, agent) = beside_a_hung_agent();
    rustix::net::listen(&agent, 0).unwrap();
    let _queued = UnixStream::connect(machine.dir().join("run/eke/agent.sock")).unwrap();
    let status = eke(&["--root", &machine.dir().display().to_string(), "status"]);
    assert_eq!(status.status, Some(3), "{}", status.shown());
    assert!(status.stderr.contains("does not answer"), "{}", status.shown());
}

//! An engine that is lost, slow, or lies: no wrong byte, and no reader fails.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use eke_testkit::wait::wait_for;
use rustix::process::Signal;

use crate::common::server::Stopped;
use crate::engine::{Engine, cluster, cluster_with_replicas, sentinel};
use crate::node::{CONTENT, FILES, Origin, cannot_run, shared};
use crate::serves::{connected, first};

#[test]
fn a_cluster_that_loses_a_node_is_used_as_far_as_it_goes() {
    if cannot_run("a_cluster_that_loses_a_node_is_used_as_far_as_it_goes") {
        return;
    }
    let (origin, mut nodes) = (Origin::new(), cluster());
    let url = format!("redis+cluster://127.0.0.1:{},127.0.0.1:{}", nodes[0].port, nodes[1].port);
    let one = first(&origin, &url);
    nodes[2].kill();
    let two = connected(&origin, &url);
    CONTENT.check(&two, &[]);
    let got = shared(&two);
    assert!(got.hits > 0 && got.refused == 0, "{got:?}");
    assert!(got.late + got.failed + got.paused > 0, "a part is lost: {got:?}");
    CONTENT.check(&one, &[]);
    nodes[2].start_again();
    CONTENT.check(&two, &[]);
}

/// A stopped master's blocks come from its replica: no read fails, and the status says so. Then from the master again.
#[test]
fn a_stopped_masters_blocks_come_from_its_replica() {
    if cannot_run("a_stopped_masters_blocks_come_from_its_replica") {
        return;
    }
    let (origin, nodes) = (Origin::new(), cluster_with_replicas());
    let url = format!("redis+cluster://127.0.0.1:{},127.0.0.1:{}", nodes[0].port, nodes[1].port);
    drop(first(&origin, &url));
    let (masters, replicas) = nodes.split_at(3);
    for engines in [masters, replicas] {
        wait_for("all blocks", || engines.iter().map(Engine::keys).sum::<u64>() == FILES * 5);
    }
    let two = connected(&origin, &url);
    let most = masters.iter().max_by_key(|master| master.keys()).unwrap();
    let stopped = Stopped::new(most.pid());
    CONTENT.check(&two, &[]);
    let got = shared(&two);
    assert_eq!([got.late, got.failed, got.paused, got.misses, got.refused], [0; 5], "{got:?}");
    assert!(got.hits >= FILES * 4, "{got:?}");
    assert!(replicas.iter().map(|replica| replica.calls("mget")).sum::<u64>() > 0);
    let loss = format!("{} does not answer: reads go to its replica", most.port);
    wait_for("the status", || shared(&two).why.is_some_and(|why| why.contains(&loss)));
    drop(stopped);
    wait_for("the end of the loss", || shared(&two).why.is_none());
    let (before, three) = (most.calls("mget"), connected(&origin, &url));
    CONTENT.check(&three, &[]);
    assert!(most.calls("mget") > before && shared(&three).misses == 0, "{:?}", shared(&three));
}

/// The sentinel makes the replica the master after the master died: no read fails meanwhile, and nodes find the new one by themselves.
#[test]
fn after_a_failover_nodes_use_the_new_master() {
    if cannot_run("after_a_failover_nodes_use_the_new_master") {
        return;
    }
    let (origin, mut old) = (Origin::new(), Engine::start(&["--repl-diskless-sync-delay", "0"]));
    let new = Engine::start(&["--replicaof", "127.0.0.1", &old.port.to_string()]);
    let (sentinel, new_port) = (sentinel(&old), new.port.to_string());
    wait_for("the sentinel to know both", || sentinel.sentinel(&["replicas", "farm"]).contains(&new_port));
    let url = format!("redis+sentinel://127.0.0.1:{}/farm", sentinel.port);
    drop(first(&origin, &url));
    wait_for("all blocks in the replica", || new.keys() == FILES * 5);
    let node = connected(&origin, &url);
    old.kill();
    assert_eq!(CONTENT.read(&node, 0), CONTENT.of(0, 0));
    wait_for("the failover to begin", || sentinel.sentinel(&["failover", "farm"]).contains("OK"));
    let named = || sentinel.sentinel(&["get-master-addr-by-name", "farm"]).contains(&new_port);
    wait_for("the sentinel to name the other", named);
    assert_eq!(CONTENT.read(&node, 1), CONTENT.of(1, 0));
    // Each connection finds out by itself, when it is asked.
    let answered = (2..FILES).any(|n| {
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(CONTENT.read(&node, n), CONTENT.of(n, 0));
        shared(&node).hits > 0
    });
    assert!(answered && shared(&node).refused == 0, "{:?}", shared(&node));
    CONTENT.check(&node, &[]);
    // What it writes goes there, too.
    std::fs::write(origin.file(2), CONTENT.of(2, 1)).unwrap();
    origin.settle();
    CONTENT.check(&node, &[(2, 1)]);
    wait_for("offers to the new master", || new.keys() > FILES * 5);
}

#[test]
fn an_engine_that_dies_hangs_and_comes_back_makes_no_wrong_byte() {
    if cannot_run("an_engine_that_dies_hangs_and_comes_back_makes_no_wrong_byte") {
        return;
    }
    let (origin, mut engine) = (Origin::new(), Engine::start(&[]));
    let url = format!("redis://127.0.0.1:{}", engine.port);
    let one = first(&origin, &url);
    let two = connected(&origin, &url);
    engine.signal(Signal::STOP);
    CONTENT.check(&two, &[]);
    let hung = shared(&two);
    assert!(hung.late + hung.failed > 0 && hung.hits == 0, "{hung:?}");
    engine.signal(Signal::CONT);
    engine.kill();
    let three = origin.node(&url, |_| {});
    CONTENT.check(&three, &[]);
    wait_for("the reason", || shared(&three).why.is_some());
    engine.start_again();
    wait_for("connections", || shared(&three).connected > 0);
    CONTENT.check(&one, &[]);
    CONTENT.check(&connected(&origin, &url), &[]);
}

#[test]
fn an_engine_that_talks_nonsense_is_given_up() {
    if cannot_run("an_engine_that_talks_nonsense_is_given_up") {
        return;
    }
    let (origin, listener) = (Origin::new(), TcpListener::bind("127.0.0.1:0").unwrap());
    let port = listener.local_addr().unwrap().port();
    // The thread ends with the test's process.
    std::thread::spawn(move || {
        for (nth, stream) in listener.incoming().enumerate() {
            let Ok(mut stream) = stream else { return };
            let answer: &[u8] = match nth % 4 {
                0 => b"$99999999999\r\n",
                1 => b"*1000000000\r\n",
                2 => b"HTTP/1.1 400 Bad Request\r\n\r\n",
                _ => b"+OK\r\n+OK\r\n*3\r\n$1\r\nx\r\n$1\r\ny\r\n$-1\r\n",
            };
            let _ = stream.read(&mut [0; 64]);
            let _ = stream.write_all(answer);
        }
    });
    let mount = origin.node(&format!("redis://127.0.0.1:{port}"), |_| {});
    (0..3).for_each(|_| CONTENT.check(&mount, &[]));
    assert_eq!(shared(&mount).hits, 0, "{:?}", shared(&mount));
}

#[test]
fn values_that_others_changed_are_refused() {
    if cannot_run("values_that_others_changed_are_refused") {
        return;
    }
    let (origin, engine) = (Origin::new(), Engine::start(&[]));
    let url = format!("redis://127.0.0.1:{}", engine.port);
    drop(first(&origin, &url));
    // Each value gets that of another block.
    let script = "local keys = redis.call('KEYS', 'eke:*') for i = 2, #keys do redis.call('COPY', keys[1], keys[i], 'REPLACE') end return #keys";
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", engine.port)).unwrap();
    write!(stream, "*3\r\n$4\r\nEVAL\r\n${}\r\n{script}\r\n$1\r\n0\r\n", script.len()).unwrap();
    let mut answer = [0; 64];
    let len = stream.read(&mut answer).unwrap();
    assert!(answer[..len].starts_with(b":1"), "{:?}", String::from_utf8_lossy(&answer[..len]));
    let two = connected(&origin, &url);
    CONTENT.check(&two, &[]);
    assert!(shared(&two).refused > 20 && shared(&two).hits <= 1, "{:?}", shared(&two));
}

//! The built program with engines and sentinels that are not real: those that want a password, and those that hang.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

mod common;

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use eke_cache_shared::frame::{Ask, OfferedBlock};
use eke_cache_shared::key::{BlockKey, Group};
use eke_cache_shared::shared::connection;
use eke_testkit::wait::wait_for;
use rustix::net::{SendFlags, send};

use common::fakes::{
    GROUP, ask, config, config_with, fake, fake_that_may_close, reply, state, with_password,
};
use common::{Program, start};

#[test]
fn sentinels_that_hang_or_want_a_password_name_the_master() {
    let value = "*32\r\n$1\r\nx\r\n".to_owned() + &"$-1\r\n".repeat(31);
    let engine = fake(move |words, authenticated| {
        with_password(words, authenticated, || match words[0].as_str() {
            "MGET" => Some(value.clone()),
            "PING" => Some("+PONG\r\n".to_owned()),
            _ => None,
        })
    });
    let hangs = fake(|_, _| None);
    let wants = fake(move |words, authenticated| {
        let port = engine.to_string();
        let master = format!("*2\r\n$9\r\n127.0.0.1\r\n${}\r\n{port}\r\n", port.len());
        with_password(words, authenticated, || (words[2] == "farm").then(|| master.clone()))
    });
    // A sentinel without a password takes none.
    let open = fake(move |words, _| {
        let port = engine.to_string();
        match words[0].as_str() {
            "SENTINEL" => Some(format!("*2\r\n$9\r\n127.0.0.1\r\n${}\r\n{port}\r\n", port.len())),
            _ => Some("-ERR AUTH <password> called without any password configured\r\n".to_owned()),
        }
    });
    for sentinel in [wants, open] {
        let program = start(&config(r#"{"Sentinel":["farm",0]}"#, &[hangs, sentinel]));
        wait_for("blocks from the master", || {
            send(&program.asks, &ask(1), SendFlags::empty()).unwrap();
            reply(&program) == Some(1)
        });
    }
}

/// What a cluster answers of whose slots `port` has the group's and those above, and `other` the rest.
fn slots(port: u16, other: u16) -> String {
    let range = |from: u16, to: u16, port: u16| {
        format!("*3\r\n:{from}\r\n:{to}\r\n*3\r\n$9\r\n127.0.0.1\r\n:{port}\r\n$1\r\nx\r\n")
    };
    let slot = GROUP.slot();
    format!("*2\r\n{}{}", range(0, slot - 1, other), range(slot, 16_383, port))
}

/// It accepts connections, as a stopped program does.
#[test]
fn a_member_of_a_cluster_that_hangs_keeps_nobody_from_the_others() {
    let hangs = fake(|_, _| None);
    let port = Arc::new(std::sync::OnceLock::new());
    let own = Arc::clone(&port);
    let member = fake(move |words, _| match words[0].as_str() {
        "MGET" => Some("*32\r\n$1\r\nx\r\n".to_owned() + &"$-1\r\n".repeat(31)),
        "CLUSTER" => own.get().map(|own| slots(*own, hangs)),
        "PING" => Some("+PONG\r\n".to_owned()),
        _ => Some("+OK\r\n".to_owned()),
    });
    port.set(member).unwrap();
    let program = start(&config_with(r#""Cluster""#, &[hangs, member], "null"));
    wait_for("blocks from the other member", || {
        send(&program.asks, &ask(1), SendFlags::empty()).unwrap();
        reply(&program) == Some(1)
    });
}

/// A batch of asks in which each block would be waited for does not end in the time that `wait_for` gives.
#[test]
fn an_engine_that_hangs_is_not_waited_for_by_each_ask() {
    let (go, may_go) = std::sync::mpsc::channel::<()>();
    let may_go = Mutex::new(may_go);
    let engine = fake(move |words, authenticated| {
        // Until the asks are sent, so that they are one batch.
        let _ = may_go.lock().unwrap().recv();
        with_password(words, authenticated, || None)
    });
    let program = start(&config(r#"{"Alone":0}"#, &[engine]));
    (0..16).for_each(|id| send(&program.asks, &ask(id), SendFlags::empty()).map(|_| ()).unwrap());
    drop(go);
    let mut failed = 0;
    wait_for("all asks to fail", || {
        failed += usize::from(reply(&program).is_none());
        failed == 16
    });
}

/// It closes the connection instead of an answer for one group. The engine answers the first ask only when all others have come to its thread, so that
/// they are one batch: after them an ask by another connection was answered.
#[test]
fn an_ask_that_breaks_the_connection_fails_alone() {
    let is_bad = |group: &Group| *group != GROUP && connection(group.slot()) == connection(GROUP.slot());
    let group =
        |is: &dyn Fn(&Group) -> bool| (0..=255).map(|n| Group([n; 16])).find(|group| is(group)).unwrap();
    let bad = group(&is_bad);
    let other = group(&|group: &Group| connection(group.slot()) != connection(GROUP.slot()));
    let prefix = BlockKey { group: bad, index: 0 }.text();
    let gate = Arc::new(Mutex::new(()));
    let may_go = Arc::clone(&gate);
    let engine = fake_that_may_close(move |words, authenticated| {
        with_password(words, authenticated, || {
            if words[0] != "MGET" {
                return Some("+OK\r\n".to_owned());
            }
            if words.len() == 2 {
                drop(may_go.lock());
            }
            let is_closed = words[1] == prefix;
            (!is_closed).then(|| format!("*{}\r\n{}", words.len() - 1, "$1\r\nx\r\n".repeat(words.len() - 1)))
        })
    });
    let program = start(&config(r#"{"Alone":0}"#, &[engine]));
    let ask =
        |group, blocks| Ask { id: 1, until_us: u64::MAX, group, indices: (0..blocks).collect() }.encode();
    wait_for("a round in which one ask fails", || {
        // Two reports are two seconds: it may connect again.
        let _ = (state(&program), state(&program));
        let gate = gate.lock();
        let asks = [ask(GROUP, 1), ask(bad, 2)].into_iter().chain((0..13).map(|_| ask(GROUP, 2)));
        asks.for_each(|ask| send(&program.asks, &ask, SendFlags::empty()).map(|_| ()).unwrap());
        send(&program.asks, &ask(other, 2), SendFlags::empty()).unwrap();
        let after = reply(&program);
        drop(gate);
        let replies: Vec<_> = (0..15).map(|_| reply(&program)).collect();
        after.is_some() && replies.iter().filter(|reply| reply.is_none()).count() == 1
    });
}

#[test]
fn blocks_that_the_engine_refuses_are_counted_until_it_stores_them() {
    let (is_full, sets) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU64::new(0)));
    let (full, asked) = (Arc::clone(&is_full), Arc::clone(&sets));
    let engine = fake(move |words, authenticated| {
        with_password(words, authenticated, || match words[0].as_str() {
            "SET" if full.load(Ordering::Relaxed) => {
                asked.fetch_add(1, Ordering::Relaxed);
                Some("-OOM command not allowed when used memory > 'maxmemory'.\r\n".to_owned())
            }
            "INFO" => Some("$42\r\nmaxmemory:9\r\nmaxmemory_policy:noeviction\r\n\r\n".to_owned()),
            _ => Some("+OK\r\n".to_owned()),
        })
    });
    let program = start(&config(r#"{"Alone":0}"#, &[engine]));
    let offer = || {
        let block = OfferedBlock { key: BlockKey { group: GROUP, index: 0 }, value: b"x" };
        (0..50).for_each(|_| send(&program.offers, &block.encode(), SendFlags::empty()).map(|_| ()).unwrap());
        state(&program)
    };
    // The engine is not asked for each.
    wait_for("refusals, and offers that wait", || {
        let state = offer();
        state.refused > sets.load(Ordering::Relaxed) && state.failed.contains("OOM") && state.keeps_all
    });
    is_full.store(false, Ordering::Relaxed);
    wait_for("offers again", || offer().failed.is_empty());
}

/// As with TLS and certificates that lack the addresses that a cluster gives.
#[test]
fn a_cluster_whose_members_cannot_be_reached_is_not_connected() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let seed = fake(move |words, _| match words[0].as_str() {
        "CLUSTER" => Some(slots(closed, closed)),
        "PING" => Some("+PONG\r\n".to_owned()),
        _ => Some("+OK\r\n".to_owned()),
    });
    let program = start(&config_with(r#""Cluster""#, &[seed], "null"));
    wait_for("a failure", || {
        let state = state(&program);
        assert_eq!(state.connected, 0);
        !state.failed.is_empty()
    });
}

/// So that another one starts, with the files as they are then.
#[test]
fn a_process_whose_password_is_refused_says_so_and_ends() {
    let engine = fake(|words, _| match words[0].as_str() {
        "AUTH" => Some("-WRONGPASS invalid username-password pair or user is disabled.\r\n".to_owned()),
        _ => Some("-NOAUTH Authentication required.\r\n".to_owned()),
    });
    let program = start(&config(r#"{"Alone":0}"#, &[engine]));
    wait_for("the reason", || state(&program).failed.to_ascii_lowercase().contains("authentication failed"));
    let Program { child, asks: _asks, offers: _offers } = program;
    assert_eq!(eke_testkit::program::output_of(child).status.code(), Some(3));
}

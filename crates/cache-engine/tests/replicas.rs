//! The built program with a cluster that is not real: a master that hangs, is gone or serves nothing, and its replica.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

mod common;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use eke_cache_shared::frame::{Ask, OfferedBlock};
use eke_cache_shared::key::{BlockKey, Group};
use eke_cache_shared::shared::connection;
use eke_testkit::wait::wait_for;
use rustix::net::{SendFlags, send};

use common::fakes::{GROUP, ask, config_with, fake_that_may_close, reply, state};
use common::{Program, start};

/// What a member does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// It accepts connections and answers nothing.
    Hangs,
    /// It closes each connection.
    Closes,
    /// It answers everything with this refusal, also PING.
    Refuses(&'static str),
    /// It says so of reads and writes alone.
    Redirects(&'static str),
}

const FAULTS: [Fault; 7] = [
    Fault::None,
    Fault::Hangs,
    Fault::Closes,
    Fault::Refuses("LOADING Redis is loading the dataset in memory"),
    Fault::Refuses("MASTERDOWN Link with MASTER is down"),
    Fault::Redirects("MOVED"),
    Fault::Redirects("ASK"),
];

/// The cluster: ports of masters with their first slot, and the replica of the last one.
type Slots = Mutex<Option<(Vec<(u16, u16)>, Option<u16>)>>;

/// A member of a cluster. `values` of the blocks of each read are there.
struct Member {
    values: usize,
    fault: AtomicUsize,
    reads: AtomicU64,
    writes: AtomicU64,
    askings: AtomicU64,
    port: OnceLock<u16>,
    cluster: Arc<Slots>,
}

impl Member {
    fn start(values: usize, cluster: &Arc<Slots>) -> Arc<Self> {
        let member = Arc::new(Self {
            values,
            fault: AtomicUsize::new(0),
            reads: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            askings: AtomicU64::new(0),
            port: OnceLock::new(),
            cluster: Arc::clone(cluster),
        });
        let own = Arc::clone(&member);
        let port = fake_that_may_close(move |words, _| own.answer(words));
        member.port.set(port).unwrap();
        member
    }

    fn port(&self) -> u16 {
        *self.port.get().unwrap()
    }

    fn set(&self, fault: Fault) {
        let index = FAULTS.iter().position(|known| *known == fault).unwrap();
        self.fault.store(index, Ordering::SeqCst);
    }

    fn reads(&self) -> u64 {
        self.reads.load(Ordering::SeqCst)
    }

    fn answer(&self, words: &[String]) -> Option<String> {
        let counter = match words[0].as_str() {
            "MGET" => Some(&self.reads),
            "SET" => Some(&self.writes),
            "ASKING" => Some(&self.askings),
            _ => None,
        };
        if let Some(counter) = counter {
            counter.fetch_add(1, Ordering::SeqCst);
        }
        let (slots, replica) = self.cluster.lock().unwrap().clone()?;
        match FAULTS[self.fault.load(Ordering::SeqCst)] {
            Fault::Hangs => return Some(String::new()),
            Fault::Closes => return None,
            Fault::Refuses(why) => return Some(format!("-{why}\r\n")),
            Fault::Redirects(how) if counter.is_some() => {
                return Some(format!("-{how} {} 127.0.0.1:{}\r\n", GROUP.slot(), replica.unwrap()));
            }
            _ => {}
        }
        match words[0].as_str() {
            "MGET" => Some(self.blocks(words.len() - 1)),
            "CLUSTER" => Some(shown(&slots, replica)),
            "PING" => Some("+PONG\r\n".to_owned()),
            _ => Some("+OK\r\n".to_owned()),
        }
    }

    fn blocks(&self, asked: usize) -> String {
        let there = self.values.min(asked);
        format!("*{asked}\r\n{}{}", "$1\r\nx\r\n".repeat(there), "$-1\r\n".repeat(asked - there))
    }
}

fn set(cluster: &Slots, masters: Vec<(u16, u16)>, replica: Option<u16>) {
    *cluster.lock().unwrap() = Some((masters, replica));
}

/// The answer to CLUSTER SLOTS.
fn shown(slots: &[(u16, u16)], replica: Option<u16>) -> String {
    let member = |port: u16| format!("*3\r\n$9\r\n127.0.0.1\r\n:{port}\r\n$1\r\nx\r\n");
    let mut text = format!("*{}\r\n", slots.len());
    for (nth, (port, from)) in slots.iter().enumerate() {
        let to = slots.get(nth + 1).map_or(16_383, |(_, next)| next - 1);
        let replica = replica.filter(|_| nth + 1 == slots.len());
        let (count, replica) = (3 + usize::from(replica.is_some()), replica.map(member).unwrap_or_default());
        text += &format!("*{count}\r\n:{from}\r\n:{to}\r\n{}{replica}", member(*port));
    }
    text
}

/// A master with all slots, its replica, and the program, connected. The master has one block of each read, the replica two.
fn with_replica() -> (Arc<Member>, Arc<Member>, Program) {
    let cluster = Arc::new(Slots::default());
    let (master, replica) = (Member::start(1, &cluster), Member::start(2, &cluster));
    set(&cluster, vec![(master.port(), 0)], Some(replica.port()));
    let program = start(&config_with(r#""Cluster""#, &[master.port(), replica.port()], "null"));
    wait_for("a block from the master", || read(&program, GROUP) == Some(1));
    wait_for("all connections", || state(&program).connected == 6);
    (master, replica, program)
}

/// The number of blocks that come; `None`: it failed.
fn read(program: &Program, group: Group) -> Option<usize> {
    let message = if group == GROUP {
        ask(1)
    } else {
        Ask { id: 1, until_us: u64::MAX, group, indices: (0..32).collect() }.encode()
    };
    send(&program.asks, &message, SendFlags::empty()).unwrap();
    reply(program)
}

#[test]
fn no_read_fails_while_a_master_answers_nothing_and_its_replica_lives() {
    std::thread::scope(|scope| FAULTS[1..5].iter().for_each(|fault| drop(scope.spawn(|| lose(*fault)))));
}

fn lose(fault: Fault) {
    let (master, replica, program) = with_replica();
    master.set(fault);
    let before = master.reads();
    for nth in 0..50 {
        assert_eq!(read(&program, GROUP), Some(2), "{fault:?}: read {nth}");
    }
    assert!(master.reads() <= before + 1, "{fault:?}: {} reads waited", master.reads() - before);
    wait_for("the status", || state(&program).failed.contains("reads go to its replica"));
    master.set(Fault::None);
    wait_for("reads from the master again", || read(&program, GROUP) == Some(1));
    wait_for("the end of the loss", || {
        let state = state(&program);
        state.failed.is_empty() && state.connected == 6
    });
    let asked = replica.reads();
    assert!(read(&program, GROUP) == Some(1) && replica.reads() == asked, "{fault:?}");
}

/// Then the lost one is no member any more, and its replica gets the offers, too.
#[test]
fn a_replica_that_was_promoted_is_the_master_to_all() {
    let (master, replica, program) = with_replica();
    master.set(Fault::Closes);
    assert_eq!(read(&program, GROUP), Some(2));
    wait_for("the status", || state(&program).failed.contains("reads go to its replica"));
    set(&master.cluster, vec![(replica.port(), 0)], None);
    wait_for("the end of the loss", || {
        assert_eq!(read(&program, GROUP), Some(2));
        state(&program).failed.is_empty()
    });
    wait_for("an offer", || {
        let block = OfferedBlock { key: BlockKey { group: GROUP, index: 0 }, value: b"x" };
        send(&program.offers, &block.encode(), SendFlags::empty()).unwrap();
        replica.writes.load(Ordering::SeqCst) > 0
    });
}

#[test]
fn offers_go_to_masters_alone() {
    let (master, replica, program) = with_replica();
    let offer = || {
        let block = OfferedBlock { key: BlockKey { group: GROUP, index: 0 }, value: b"x" };
        (0..4).for_each(|_| send(&program.offers, &block.encode(), SendFlags::empty()).map(drop).unwrap());
        state(&program)
    };
    let writes = |member: &Member| member.writes.load(Ordering::SeqCst);
    wait_for("an offer", || {
        offer();
        writes(&master) > 0
    });
    master.set(Fault::Hangs);
    wait_for("offers that nobody took", || offer().refused > 3);
    master.set(Fault::None);
    let before = writes(&master);
    wait_for("offers again", || {
        offer();
        writes(&master) > before
    });
    assert_eq!(writes(&replica), 0);
}

#[test]
fn a_read_follows_a_slot_to_another_member() {
    for fault in [Fault::Redirects("MOVED"), Fault::Redirects("ASK")] {
        let (master, replica, program) = with_replica();
        master.set(fault);
        for nth in 0..20 {
            assert_eq!(read(&program, GROUP), Some(2), "{fault:?}: read {nth}");
        }
        let askings = replica.askings.load(Ordering::SeqCst);
        assert_eq!((replica.reads(), askings), (20, if fault == Fault::Redirects("ASK") { 20 } else { 0 }));
        master.set(Fault::None);
        assert_eq!(read(&program, GROUP), Some(1), "nothing was lost");
    }
}

/// Both masters have slots of one thread. The lost one is waited for once, and the other one answers each time.
#[test]
fn a_lost_master_without_a_replica_keeps_nobody_waiting_twice() {
    let other = (0..=255)
        .map(|n| Group([n; 16]))
        .find(|group| group.slot() < GROUP.slot() && connection(group.slot()) == connection(GROUP.slot()));
    let (other, cluster) = (other.unwrap(), Arc::new(Slots::default()));
    let (lost, living) = (Member::start(1, &cluster), Member::start(2, &cluster));
    set(&cluster, vec![(living.port(), 0), (lost.port(), GROUP.slot())], None);
    let program = start(&config_with(r#""Cluster""#, &[lost.port(), living.port()], "null"));
    wait_for("blocks of both", || read(&program, GROUP) == Some(1) && read(&program, other) == Some(2));
    wait_for("all connections", || state(&program).connected == 6);
    lost.set(Fault::Hangs);
    let before = lost.reads();
    for nth in 0..20 {
        assert_eq!([read(&program, GROUP), read(&program, other)], [None, Some(2)], "read {nth}");
    }
    assert_eq!(lost.reads(), before + 1);
    wait_for("the status", || state(&program).failed.contains("reads go to the origin"));
    lost.set(Fault::None);
    wait_for("reads again", || read(&program, GROUP) == Some(1));
}

/// With all members gone nothing is connected, so that the alert fires; and then it is again.
#[test]
fn a_cluster_that_is_gone_is_not_connected_until_it_is_back() {
    let (master, replica, program) = with_replica();
    [&master, &replica].into_iter().for_each(|member| member.set(Fault::Closes));
    wait_for("the loss of all", || {
        let _ = read(&program, GROUP);
        state(&program).connected == 0
    });
    [&master, &replica].into_iter().for_each(|member| member.set(Fault::None));
    wait_for("all again", || read(&program, GROUP) == Some(1) && state(&program).connected == 6);
}

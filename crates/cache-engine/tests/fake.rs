//! The built program with engines and sentinels that are not real: those that want a password, and those that hang.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use eke_cache_shared::frame::{Ask, MESSAGE, Reply};
use eke_cache_shared::key::Group;
use eke_testkit::wait::wait_for;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use common::{Program, start};

/// What a fake answers to a command; nothing for `None`.
type Answer = dyn Fn(&[String], &mut bool) -> Option<String> + Send + Sync;

/// Listens; `answer` gets each command, and whether AUTH came before on this connection. The threads end with the test's process.
fn fake(answer: impl Fn(&[String], &mut bool) -> Option<String> + Send + Sync + 'static) -> u16 {
    let (listener, answer): (_, Arc<Answer>) = (TcpListener::bind("127.0.0.1:0").unwrap(), Arc::new(answer));
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || serve(&stream, &*answer));
        }
    });
    port
}

fn serve(stream: &TcpStream, answer: &Answer) -> Option<()> {
    let (mut reader, mut writer, mut authenticated) = (BufReader::new(stream), stream, false);
    let number = |reader: &mut BufReader<&TcpStream>| {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        line.trim_end().get(1..)?.parse::<usize>().ok()
    };
    loop {
        let mut words = Vec::new();
        for _ in 0..number(&mut reader)? {
            let mut word = vec![0; number(&mut reader)? + 2];
            reader.read_exact(&mut word).ok()?;
            words.push(String::from_utf8_lossy(&word[..word.len() - 2]).into_owned());
        }
        let given = answer(&words, &mut authenticated).unwrap_or_default();
        writer.write_all(given.as_bytes()).ok()?;
    }
}

/// An answer that AUTH must precede.
fn with_password(
    words: &[String],
    authenticated: &mut bool,
    answer: impl Fn() -> Option<String>,
) -> Option<String> {
    match words[0].as_str() {
        "AUTH" => {
            *authenticated = words[1..] == ["eke", "hidden"];
            Some("+OK\r\n".to_owned())
        }
        _ if !*authenticated => Some("-NOAUTH Authentication required.\r\n".to_owned()),
        _ => answer(),
    }
}

fn config(kind: &str, ports: &[u16]) -> String {
    config_with(kind, ports, r#""hidden""#)
}

fn config_with(kind: &str, ports: &[u16], password: &str) -> String {
    let hosts: Vec<String> = ports.iter().map(|port| format!(r#"["127.0.0.1",{port}]"#)).collect();
    let hosts = hosts.join(",");
    format!(
        r#"{{"url":{{"kind":{kind},"tls":false,"user":"eke","hosts":[{hosts}]}},"password":{password},"ca":null}}"#
    )
}

const GROUP: Group = Group([3; 16]);

/// An ask for all blocks of a group.
fn ask(id: u64) -> Vec<u8> {
    Ask { id, until_us: u64::MAX, group: GROUP, indices: (0..32).collect() }.encode()
}

/// The next reply to an ask: the number of its blocks that are there, or `None` if it failed.
fn reply(program: &Program) -> Option<usize> {
    let mut buffer = vec![0; MESSAGE];
    loop {
        let (len, _) = recv(&program.asks, &mut buffer[..], RecvFlags::empty()).unwrap();
        match Reply::decode(&buffer[..len]) {
            Some(Reply::Blocks(_, blocks)) => {
                return Some(blocks.iter().filter(|(_, block)| block.is_some()).count());
            }
            Some(Reply::Failed(_)) => return None,
            _ => {}
        }
    }
}

#[test]
fn sentinels_that_hang_or_want_a_password_name_the_master() {
    let value = "*32\r\n$1\r\nx\r\n".to_owned() + &"$-1\r\n".repeat(31);
    let engine = fake(move |words, authenticated| {
        with_password(words, authenticated, || (words[0] == "MGET").then(|| value.clone()))
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
fn an_engine_that_hangs_is_waited_for_once() {
    let (go, may_go) = std::sync::mpsc::channel::<()>();
    let may_go = std::sync::Mutex::new(may_go);
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

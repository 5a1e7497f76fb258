//! Engines and sentinels that are not real, and what the program does with them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use eke_cache_shared::frame::{Ask, EngineState, MESSAGE, Reply};
use eke_cache_shared::key::Group;
use rustix::net::{RecvFlags, recv};

use super::Program;

/// What a fake answers to a command; `None`: it closes the connection.
type Answer = dyn Fn(&[String], &mut bool) -> Option<String> + Send + Sync;

/// Listens; `answer` gets each command, and whether AUTH came before on this connection; `None` is no answer. The threads end with the test's
/// process.
pub fn fake(answer: impl Fn(&[String], &mut bool) -> Option<String> + Send + Sync + 'static) -> u16 {
    fake_that_may_close(move |words, authenticated| answer(words, authenticated).or(Some(String::new())))
}

/// The same, but `None` closes the connection.
pub fn fake_that_may_close(
    answer: impl Fn(&[String], &mut bool) -> Option<String> + Send + Sync + 'static,
) -> u16 {
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
        writer.write_all(answer(&words, &mut authenticated)?.as_bytes()).ok()?;
    }
}

/// An answer that AUTH must precede.
pub fn with_password(
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

pub fn config(kind: &str, ports: &[u16]) -> String {
    config_with(kind, ports, r#""hidden""#)
}

pub fn config_with(kind: &str, ports: &[u16], password: &str) -> String {
    let hosts: Vec<String> = ports.iter().map(|port| format!(r#"["127.0.0.1",{port}]"#)).collect();
    let hosts = hosts.join(",");
    format!(
        r#"{{"url":{{"kind":{kind},"tls":false,"user":"eke","hosts":[{hosts}]}},"password":{password},"ca":null}}"#
    )
}

pub const GROUP: Group = Group([3; 16]);

/// An ask for all blocks of a group.
pub fn ask(id: u64) -> Vec<u8> {
    Ask { id, until_us: u64::MAX, group: GROUP, indices: (0..32).collect() }.encode()
}

/// The next report of the engine's state.
pub fn state(program: &Program) -> EngineState {
    let mut buffer = vec![0; MESSAGE];
    loop {
        let (len, _) = recv(&program.asks, &mut buffer[..], RecvFlags::empty()).unwrap();
        if let Some(Reply::Engine(state)) = Reply::decode(&buffer[..len]) {
            return state;
        }
    }
}

/// The next reply to an ask: the number of its blocks that are there, or `None` if it failed.
pub fn reply(program: &Program) -> Option<usize> {
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

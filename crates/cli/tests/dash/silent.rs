//! Clients of any user that connect and send nothing.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use crate::environment::{Environment, get, port_of, serving};

const CLIENTS: usize = 300;

/// A serving verb with fewer descriptors than clients.
fn few_descriptors(environment: &Environment, verb: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 256; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_eke"), "--root"]);
    command.args([environment.root(), verb, "--listen", "127.0.0.1:0"]);
    command.env("XDG_STATE_HOME", environment.path("state"));
    command
}

fn clients(to: SocketAddr, sent: &[u8]) -> Vec<TcpStream> {
    let client = || {
        let mut stream = TcpStream::connect(to).unwrap();
        // Older connections are closed for it.
        let _ = stream.write_all(sent);
        stream
    };
    (0..CLIENTS).map(|_| client()).collect()
}

#[test]
fn three_hundred_silent_clients_block_neither_the_page_nor_the_metrics() {
    let environment = Environment::new();
    for (verb, path) in [("dash", "/now"), ("metrics", "/metrics")] {
        let (_process, address) = serving(few_descriptors(&environment, verb));
        let to = port_of(&address);
        let silent = clients(to, b"");
        assert_eq!(get(to, path, &["Host: localhost"]).status, 200, "{verb}");
        let half = clients(to, b"GET / HTTP/1.1\r\nHost: local");
        assert_eq!(get(to, path, &["Host: localhost"]).status, 200, "{verb}");
        let body = b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n";
        let unfinished = clients(to, body);
        assert_eq!(get(to, path, &["Host: localhost"]).status, 200, "{verb}");
        drop((silent, half, unfinished));
    }
}

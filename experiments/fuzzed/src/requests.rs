//! FUSE requests to a worker's session, over a socket pair instead of the device. Only the kernel's guarantees hold:
//! names have no slash and are not `..`, no devices are created, writes, extended attributes and ioctls have their declared
//! number of bytes, and no request is shorter than its header. Everything else is foreign: opcodes, nodes, lengths,
//! flags, users.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use eke_cache_serve::init::{Grant, session};
use eke_cache_serve::ledger::OwnedEntry;
use eke_cachefs::fs::{Fs, Options, Serve, capabilities};
use eke_cachefs::node::NoLedger;
use eke_cachefs::tier::Tier;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, recv, send, shutdown, socketpair,
};

use crate::input::Input;
use crate::scratch;

const HEADER: usize = 40;
const MKNOD: u32 = 8;
const WRITE: u32 = 16;
/// `fuse_write_in`, and the offset of its size.
const WRITE_BYTES: usize = 40;
const WRITE_SIZE: usize = 16;
const SETXATTR: u32 = 21;
/// `fuse_setxattr_in`, which begins with the value's size; then come the name and the value.
const SETXATTR_BYTES: usize = 8;
const IOCTL: u32 = 39;
/// `fuse_ioctl_in`, and the offset of the input's size.
const IOCTL_BYTES: usize = 32;
const IOCTL_SIZE: usize = 24;

/// The input: first the nodes of an earlier worker (count; node, parent and name of each), then requests (opcode, node,
/// user, length of the body, body). The session must answer or skip each one, and end when the device does.
pub fn fuse_requests(data: &[u8]) {
    let dir = scratch::empty("tree");
    std::fs::create_dir(dir.join("dir")).expect("a directory");
    std::fs::write(dir.join("file"), [b'x'; 9000]).expect("a file");
    std::fs::write(dir.join("dir/inner"), b"inner").expect("a file");
    let root = open(&dir, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).expect("a directory");
    let fs =
        Fs::new(root, Arc::new(Tier::default()), Arc::new(NoLedger), Options::default()).expect("a tree");
    let mut input = Input(data);
    let left = inherited_nodes(&mut input);
    fs.nodes().restore(left.iter().map(OwnedEntry::entry), Vec::new());
    let (ours, live) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).expect("sockets");
    let session = session(Serve::new(Arc::new(fs)), &live, &grant()).expect("a session");
    drop(live);
    let thread = std::thread::spawn(move || session.run());
    // Nodes 2 and 3 exist if they are numbered in this order.
    let mut requests = vec![request(1, 1, 1, b"file\0"), request(2, 1, 1, b"dir\0")];
    while !input.is_empty() && requests.len() < 64 {
        requests.push(next(&mut input, requests.len() as u64 + 1));
    }
    let _ = exchange(&ours, &requests);
    let _ = thread.join().expect("the session ends without a panic");
}

/// Nodes in any order, also cyclic.
fn inherited_nodes(input: &mut Input<'_>) -> Vec<OwnedEntry> {
    let count = input.u8() % 16;
    let entry = |input: &mut Input<'_>| {
        let (node, parent, kind) = (u64::from(input.u8() % 16), u64::from(input.u8() % 16), input.u8());
        let name = ["file", "dir", "inner", "gone"][usize::from(kind % 4)].into();
        match kind / 4 % 5 {
            0 => OwnedEntry::Opened { node },
            1 => OwnedEntry::Released { node },
            2 => OwnedEntry::Forgotten { node },
            _ => OwnedEntry::Known {
                node,
                parent,
                name,
                dev: 0,
                ino: node,
                born_ns: 0,
                generation: u64::from(kind % 2),
            },
        }
    };
    (0..count).map(|_| entry(input)).collect()
}

fn grant() -> Grant {
    Grant {
        minor: 40,
        max_readahead: 131_072,
        flags: (capabilities() - fuser::InitFlags::FUSE_PASSTHROUGH).bits(),
        max_background: 64,
        congestion_threshold: 48,
        max_write: 256 << 10,
        max_pages: 64,
        max_stack_depth: 0,
    }
}

fn request(unique: u64, opcode: u32, node: u64, body: &[u8]) -> Vec<u8> {
    let length = (HEADER + body.len()) as u32;
    let mut bytes = Vec::with_capacity(HEADER + body.len());
    bytes.extend(length.to_ne_bytes());
    bytes.extend(opcode.to_ne_bytes());
    bytes.extend(unique.to_ne_bytes());
    bytes.extend(node.to_ne_bytes());
    bytes.extend([0; 16]);
    bytes.extend(body);
    bytes
}

/// The declared and the actual number of bytes in a request's value.
fn value(opcode: u32, body: &[u8]) -> Option<(usize, usize)> {
    match opcode {
        WRITE => body.len().checked_sub(WRITE_BYTES).map(|size| (WRITE_SIZE, size)),
        IOCTL => body.len().checked_sub(IOCTL_BYTES).map(|size| (IOCTL_SIZE, size)),
        SETXATTR => {
            let after = body.get(SETXATTR_BYTES..)?;
            let name = after.iter().position(|b| *b == 0)?;
            Some((0, after.len() - name - 1))
        }
        _ => None,
    }
}

fn next(input: &mut Input<'_>, unique: u64) -> Vec<u8> {
    let opcode = u32::from(input.u8() % 56);
    let node = match input.u8() {
        at @ 0..=7 => u64::from(at),
        8 => u64::MAX,
        at => u64::from(at % 4) + 1,
    };
    let user = u32::from(input.u8() % 4) * 1000;
    let is_odd = input.u8();
    let mut body: Vec<u8> = input.piece().iter().map(|b| if *b == b'/' { b'_' } else { *b }).collect();
    while let Some(at) = body.windows(2).position(|two| two == b"..") {
        body[at] = b'_';
    }
    if opcode == MKNOD {
        let mode = u32::from_ne_bytes(body.first_chunk().copied().unwrap_or_default());
        let kind = if mode & 0o170_000 == 0o140_000 { 0o140_000 } else { 0o100_000 };
        body.splice(..body.len().min(8), [(mode & 0o7777 | kind).to_ne_bytes(), [0; 4]].concat());
    }
    // fuser ends its process if these differ.
    let sized = value(opcode, &body);
    if let Some((at, size)) = sized {
        body[at..at + 4].copy_from_slice(&(size as u32).to_ne_bytes());
    }
    let mut bytes = request(unique, opcode, node, &body);
    bytes[24..28].copy_from_slice(&user.to_ne_bytes());
    bytes[28..32].copy_from_slice(&user.to_ne_bytes());
    if is_odd == 1 && sized.is_none() {
        bytes[..4].copy_from_slice(&u32::from(input.u16()).max(HEADER as u32).to_ne_bytes());
    }
    bytes
}

/// Sends all requests and receives all answers, in any interleaving.
fn exchange(ours: &OwnedFd, requests: &[Vec<u8>]) -> io::Result<()> {
    let mut answer = vec![0; 1 << 20];
    let mut left = requests.iter().peekable();
    loop {
        let wanted = if left.peek().is_some() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let mut fds = [PollFd::from_borrowed_fd(ours.as_fd(), wanted)];
        poll(&mut fds, None)?;
        let events = fds[0].revents();
        if events.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            let (length, _) = recv(ours, &mut answer[..], RecvFlags::DONTWAIT)?;
            if length == 0 {
                return Ok(());
            }
            assert!(length >= 16, "an answer without its header");
        } else if events.contains(PollFlags::OUT) {
            if let Some(request) = left.next() {
                send(ours, request, SendFlags::NOSIGNAL)?;
            }
            if left.peek().is_none() {
                shutdown(ours, Shutdown::Write)?;
            }
        }
    }
}

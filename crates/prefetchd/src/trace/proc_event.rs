//! Decodes the kernel's process events: `struct nlmsghdr`, `struct cn_msg`, `struct proc_event` (linux/netlink.h, linux/connector.h, linux/cn_proc.h;
//! since Linux 2.6.15), and encodes the request for them.

use std::time::Duration;

/// A process event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcEvent {
    /// A process forked; threads are left out.
    Fork {
        /// The process.
        parent: u32,
        /// The child.
        child: u32,
    },
    /// A process executed a program.
    Exec {
        /// The process.
        pid: u32,
        /// CLOCK_MONOTONIC.
        at: Duration,
    },
    /// A process ended.
    Exit {
        /// The process.
        pid: u32,
        /// CLOCK_MONOTONIC.
        at: Duration,
    },
}

const NLMSG_DONE: u16 = 3;
const CN_IDX_PROC: u32 = 1;
const CN_VAL_PROC: u32 = 1;
/// The multicast group of the events.
pub const GROUP: u32 = CN_IDX_PROC;
const PROC_CN_MCAST_LISTEN: u32 = 1;

const HEADER: usize = 16;
const MESSAGE: usize = 20;
const EVENT: usize = HEADER + MESSAGE;

const FORK: u32 = 1;
const EXEC: u32 = 2;
const EXIT: u32 = 0x8000_0000;

/// The message that subscribes to the events.
pub fn request() -> Vec<u8> {
    let length = (HEADER + MESSAGE + 4) as u32;
    let mut bytes = Vec::new();
    bytes.extend(length.to_ne_bytes());
    bytes.extend(NLMSG_DONE.to_ne_bytes());
    bytes.extend([0; 10]);
    bytes.extend(CN_IDX_PROC.to_ne_bytes());
    bytes.extend(CN_VAL_PROC.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend(4u16.to_ne_bytes());
    bytes.extend([0; 2]);
    bytes.extend(PROC_CN_MCAST_LISTEN.to_ne_bytes());
    bytes
}

/// The event in a message; `None` for other kinds, for threads, and for short messages.
pub fn decode(bytes: &[u8]) -> Option<ProcEvent> {
    let field = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    (field(HEADER)? == CN_IDX_PROC && field(HEADER + 4)? == CN_VAL_PROC).then_some(())?;
    let at = Duration::from_nanos(u64::from_ne_bytes(bytes.get(EVENT + 8..EVENT + 16)?.try_into().ok()?));
    let data = |n: usize| field(EVENT + 16 + 4 * n);
    match field(EVENT)? {
        FORK => {
            let (parent, thread, child) = (data(1)?, data(2)?, data(3)?);
            (thread == child).then_some(ProcEvent::Fork { parent, child })
        }
        EXEC => Some(ProcEvent::Exec { pid: data(1)?, at }),
        EXIT => (data(0)? == data(1)?).then_some(ProcEvent::Exit { pid: data(1)?, at }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(what: u32, data: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER];
        bytes.extend([CN_IDX_PROC, CN_VAL_PROC, 0, 0].iter().flat_map(|n| n.to_ne_bytes()));
        bytes.extend([0; 4]);
        bytes.extend([what, 0].iter().flat_map(|n| n.to_ne_bytes()));
        bytes.extend(5u64.to_ne_bytes());
        bytes.extend(data.iter().flat_map(|n| n.to_ne_bytes()));
        bytes
    }

    #[test]
    fn events_are_those_of_processes() {
        let at = Duration::from_nanos(5);
        assert_eq!(decode(&message(FORK, &[7, 7, 9, 9])), Some(ProcEvent::Fork { parent: 7, child: 9 }));
        assert_eq!(decode(&message(FORK, &[7, 7, 9, 7])), None, "a thread");
        assert_eq!(decode(&message(EXEC, &[9, 9])), Some(ProcEvent::Exec { pid: 9, at }));
        assert_eq!(decode(&message(EXIT, &[9, 9, 0, 17])), Some(ProcEvent::Exit { pid: 9, at }));
        assert_eq!(decode(&message(EXIT, &[10, 9, 0, 17])), None, "a thread");
        assert_eq!(decode(&message(4, &[9, 9])), None);
    }

    #[test]
    fn the_request_has_its_length() {
        let request = request();
        assert_eq!(request.len(), 40);
        assert_eq!(request[..4], 40u32.to_ne_bytes());
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_an_event_or_none(bytes in proptest::collection::vec(0u8.., 0..120)) {
            let _ = decode(&bytes);
        }
    }
}

//! The limits of connections: how many, how long, and which one is closed when all places are taken. Pure.
//!
//! An idle connection costs its client nothing, so a client can open any number. If all places are taken, the server closes one of the
//! peer with the most connections: the oldest without a request, else the oldest that does not read its answer. On loopback all users are
//! one peer; a browser or a scraper sends its request at once, so it is not among the oldest without one.

use std::net::IpAddr;
use std::time::Duration;

/// The bounds of a server.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The most connections at a time.
    pub most: usize,
    /// A request's head must be complete within this time.
    pub head: Duration,
    /// The connection is closed after this time, even if its answer was not read.
    pub whole: Duration,
}

impl Default for Bounds {
    /// A page opens six connections. An answer waits at most for the agent (5 s) and the mounts (3 s).
    fn default() -> Self {
        Self { most: 64, head: Duration::from_secs(5), whole: Duration::from_secs(30) }
    }
}

/// The phase of a connection, which has one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Its answer is being prepared.
    Asked,
    /// Its answer is being sent.
    Answered,
    /// Its request is incomplete.
    Silent,
}

/// A connection's peer and phase.
pub type Place = (IpAddr, Phase);

/// The connection, of those given oldest first, that is closed for a new one; `None` if all answers are being prepared.
pub fn gives_way(places: &[Place]) -> Option<usize> {
    let of_peer = |peer| places.iter().filter(|(other, _)| *other == peer).count();
    let candidates = places.iter().enumerate().filter(|(_, (_, phase))| *phase != Phase::Asked);
    let rank = |(number, (peer, phase)): &(usize, &Place)| (of_peer(*peer), *phase, usize::MAX - number);
    candidates.max_by_key(rank).map(|(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Phase::{Answered, Asked, Silent};

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    #[test]
    fn the_oldest_without_a_request_is_closed_first_then_the_oldest_that_does_not_read() {
        assert_eq!(gives_way(&[(HERE, Asked), (HERE, Silent), (HERE, Silent)]), Some(1));
        assert_eq!(gives_way(&[(HERE, Answered), (HERE, Asked), (HERE, Silent)]), Some(2));
        assert_eq!(gives_way(&[(HERE, Asked), (HERE, Answered), (HERE, Answered)]), Some(1));
        assert_eq!(gives_way(&[(HERE, Asked)]), None);
        assert_eq!(gives_way(&[]), None);
    }

    #[test]
    fn the_peer_with_the_most_connections_loses_one_first() {
        let flooded = [(HERE, Silent), (THERE, Silent), (THERE, Asked), (THERE, Answered)];
        assert_eq!(gives_way(&flooded), Some(1));
        assert_eq!(gives_way(&[(HERE, Silent), (THERE, Answered), (THERE, Asked)]), Some(1));
        assert_eq!(gives_way(&[(HERE, Silent), (THERE, Asked), (THERE, Asked)]), Some(0));
    }
}

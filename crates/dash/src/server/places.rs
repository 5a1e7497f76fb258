//! How many connections there may be, how long each may take, and which one is closed when all places are taken. Pure.
//!
//! A client that connects and says nothing costs its owner nothing, so there will be as many as somebody likes. When a
//! newcomer finds all places taken, one of the peer with the most connections is closed: the oldest that has not asked
//! yet, else the oldest that does not take its answer. On loopback all users are one peer; a browser or a scraper asks at
//! once, and is not among the oldest that have not.

use std::net::IpAddr;
use std::time::Duration;

/// The bounds of a server.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The most connections at a time.
    pub most: usize,
    /// A request's head is whole within this time.
    pub head: Duration,
    /// The connection is over within this time, its answer taken or not.
    pub whole: Duration,
}

impl Default for Bounds {
    /// A page opens six connections. An answer waits for the agent (5 s) and the mounts (3 s) at most.
    fn default() -> Self {
        Self { most: 64, head: Duration::from_secs(5), whole: Duration::from_secs(30) }
    }
}

/// How far a connection is. There is one request on each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Its answer is being made.
    Asked,
    /// Its answer is being sent.
    Answered,
    /// Its request is not whole.
    Silent,
}

/// A connection's peer and phase.
pub type Place = (IpAddr, Phase);

/// Which of the connections, oldest first, is closed for a newcomer. `None`: all are being answered.
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
    fn the_oldest_that_did_not_ask_gives_way_then_the_oldest_that_does_not_read() {
        assert_eq!(gives_way(&[(HERE, Asked), (HERE, Silent), (HERE, Silent)]), Some(1));
        assert_eq!(gives_way(&[(HERE, Answered), (HERE, Asked), (HERE, Silent)]), Some(2));
        assert_eq!(gives_way(&[(HERE, Asked), (HERE, Answered), (HERE, Answered)]), Some(1));
        assert_eq!(gives_way(&[(HERE, Asked)]), None);
        assert_eq!(gives_way(&[]), None);
    }

    #[test]
    fn whoever_has_the_most_connections_gives_way_before_another_peer() {
        let flooded = [(HERE, Silent), (THERE, Silent), (THERE, Asked), (THERE, Answered)];
        assert_eq!(gives_way(&flooded), Some(1));
        assert_eq!(gives_way(&[(HERE, Silent), (THERE, Answered), (THERE, Asked)]), Some(1));
        assert_eq!(gives_way(&[(HERE, Silent), (THERE, Asked), (THERE, Asked)]), Some(0));
    }
}

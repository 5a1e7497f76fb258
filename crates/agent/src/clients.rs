//! All clients: a bounded number of them, each dropped when its time is up.

use std::os::unix::net::UnixListener;

use crate::client::Client;

/// The most clients at a time.
pub const MOST: usize = 16;
/// The most of them that are not root's: nobody can keep root from stopping the agent.
pub const MOST_OF_OTHERS: usize = 12;
/// When the kernel gives no descriptor (EMFILE, ENOMEM), the listener is left alone for this long.
const REST_MS: u64 = 1_000;

/// The clients that are connected.
#[derive(Debug, Default)]
pub struct Clients {
    list: Vec<Client>,
    resting_until_ms: u64,
}

impl Clients {
    /// Takes one client from the listener; beyond the bounds it is closed at once.
    pub fn accept(&mut self, listener: &UnixListener, now_ms: u64) {
        let client = match listener.accept() {
            Ok((stream, _)) => Client::new(stream, now_ms),
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => return,
            Err(e) => Err(e),
        };
        match client {
            Ok(client) if self.has_room_for(&client) => self.list.push(client),
            Ok(_) => tracing::debug!("A client was closed: {} are connected.", self.list.len()),
            Err(e) => {
                tracing::warn!("A client could not be taken: {e}; the next is in {REST_MS} ms.");
                self.resting_until_ms = now_ms + REST_MS;
            }
        }
    }

    fn has_room_for(&self, client: &Client) -> bool {
        let others = self.list.iter().filter(|c| !c.is_root()).count();
        self.list.len() < MOST && (client.is_root() || others < MOST_OF_OTHERS)
    }

    /// Is the listener to be polled?
    pub fn are_welcome(&self, now_ms: u64) -> bool {
        now_ms >= self.resting_until_ms
    }

    /// Those that are connected, in the order of their coming.
    pub fn iter(&self) -> std::slice::Iter<'_, Client> {
        self.list.iter()
    }

    /// Lets `serve` handle each with its number and keeps those for which it says so.
    pub fn retain(&mut self, mut serve: impl FnMut(usize, &mut Client) -> bool) {
        let mut number = 0..;
        self.list.retain_mut(|client| serve(number.next().unwrap_or(usize::MAX), client));
    }

    /// When something is due by time alone: now if a request waits in a buffer, else the first deadline.
    pub fn due_ms(&self, now_ms: u64) -> Option<u64> {
        let waiting = self.list.iter().any(Client::has_line).then_some(now_ms);
        let resting = (self.resting_until_ms > now_ms).then_some(self.resting_until_ms);
        waiting.or(self.list.iter().map(Client::deadline_ms).chain(resting).min())
    }
}

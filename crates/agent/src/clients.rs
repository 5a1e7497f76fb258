//! All clients: a bounded number, in total and per user, each with a deadline.

use std::os::unix::net::{UnixListener, UnixStream};

use crate::aside::Aside;
use crate::client::Client;

/// Most clients at a time.
pub const MOST: usize = 32;
/// Most clients that are not root's: nobody can keep root from stopping the agent.
pub const MOST_OF_OTHERS: usize = 24;
/// Most clients of one user who is not root.
pub const MOST_OF_A_USER: usize = 6;
/// Pause in accepting after the kernel has no descriptor or memory (EMFILE, ENOMEM).
const REST_MS: u64 = 1_000;
/// Most connections to accept from the public socket in [`WINDOW_MS`]; then it waits for the next window. A flood costs
/// a few percent of a core, and a full queue is accepted in two or three windows.
const IN_A_WINDOW: u32 = 100;
const WINDOW_MS: u64 = 20;

/// Who may connect to a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// Everybody.
    Everybody,
    /// Root only: its connections do not queue behind those of other users.
    Root,
}

/// The connected clients.
#[derive(Debug, Default)]
pub struct Clients {
    list: Vec<Client>,
    resting_until_ms: u64,
    window_until_ms: u64,
    in_window: u32,
    aside: Option<Aside>,
}

impl Clients {
    /// None yet. `refuses`: the kernel refuses descriptors of clients.
    pub fn new(refuses: bool) -> Self {
        Self { aside: (!refuses).then(Aside::default), ..Self::default() }
    }

    /// Accepts the clients that wait at the listener.
    pub fn accept(&mut self, listener: &UnixListener, entry: Entry, now_ms: u64) {
        while self.are_welcome(entry, now_ms) {
            let client = match listener.accept() {
                Ok((stream, _)) => self.client(stream, now_ms),
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(e) => Err(e),
            };
            match client {
                Ok(client) => self.take(client),
                Err(e) => {
                    tracing::warn!("Cannot accept a client: {e}; the next attempt is in {REST_MS} ms.");
                    self.resting_until_ms = now_ms + REST_MS;
                }
            }
            if entry == Entry::Everybody {
                self.count(now_ms);
            }
        }
    }

    fn client(&self, stream: UnixStream, now_ms: u64) -> std::io::Result<Client> {
        let client = Client::new(stream, now_ms)?;
        match &self.aside {
            Some(aside) => client.with(aside),
            None => Ok(client),
        }
    }

    /// Has another process close connections in which descriptors wait.
    pub fn pass_on(&self, now_ms: u64) {
        if let Some(aside) = &self.aside {
            aside.pass_on(now_ms);
        }
    }

    fn count(&mut self, now_ms: u64) {
        if now_ms >= self.window_until_ms {
            (self.window_until_ms, self.in_window) = (now_ms + WINDOW_MS, 0);
        }
        self.in_window += 1;
    }

    fn is_window_full(&self, now_ms: u64) -> bool {
        self.in_window >= IN_A_WINDOW && now_ms < self.window_until_ms
    }

    /// Adds a client, or closes it if there is no room.
    fn take(&mut self, client: Client) {
        if self.makes_room_for(&client) {
            self.list.push(client);
        }
    }

    /// Closes a silent client to make room: one of the same user, else one of the user with the most.
    fn makes_room_for(&mut self, client: &Client) -> bool {
        if client.is_root() {
            return self.list.len() < MOST;
        }
        if self.count_of(client.uid()) >= MOST_OF_A_USER {
            return self.closes_silent_one(client.uid());
        }
        let others = self.list.iter().filter(|c| !c.is_root());
        if others.clone().count() < MOST_OF_OTHERS {
            return true;
        }
        let busiest = others.map(Client::uid).max_by_key(|uid| self.count_of(*uid));
        busiest.is_some_and(|uid| self.closes_silent_one(uid))
    }

    fn count_of(&self, uid: u32) -> usize {
        self.list.iter().filter(|c| c.uid() == uid).count()
    }

    fn closes_silent_one(&mut self, uid: u32) -> bool {
        let oldest = self.list.iter().position(|c| c.uid() == uid && c.is_silent());
        oldest.map(|number| self.list.remove(number)).is_some()
    }

    /// Whether to poll the listener.
    pub fn are_welcome(&self, entry: Entry, now_ms: u64) -> bool {
        let is_full = || self.is_window_full(now_ms) || self.aside.as_ref().is_some_and(Aside::is_full);
        now_ms >= self.resting_until_ms && (entry == Entry::Root || !is_full())
    }

    /// The clients in the order of connecting.
    pub fn iter(&self) -> std::slice::Iter<'_, Client> {
        self.list.iter()
    }

    /// Serves each client with its number, and keeps those for which `serve` returns true.
    pub fn retain(&mut self, mut serve: impl FnMut(usize, &mut Client) -> bool) {
        let mut number = 0..;
        self.list.retain_mut(|client| serve(number.next().unwrap_or(usize::MAX), client));
    }

    /// The next time at which a client needs service without input: a buffered request, the end of a pause, or a
    /// deadline.
    pub fn due_ms(&self, now_ms: u64) -> Option<u64> {
        let resting = (self.resting_until_ms > now_ms).then_some(self.resting_until_ms);
        let full = self.is_window_full(now_ms).then_some(self.window_until_ms);
        let aside = self.aside.as_ref().and_then(Aside::due_ms);
        let pauses = resting.into_iter().chain(full).chain(aside);
        self.list.iter().map(|client| client.due_ms(now_ms)).chain(pauses).min()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A client of this user, and its other end.
    fn client(uid: u32) -> (UnixStream, Client) {
        let (there, here) = UnixStream::pair().unwrap();
        (there, Client::new(here, 0).unwrap().of_user(uid))
    }

    fn uids(clients: &Clients) -> Vec<u32> {
        clients.iter().map(Client::uid).collect()
    }

    fn take(clients: &mut Clients, uid: u32) -> UnixStream {
        let (there, client) = client(uid);
        clients.take(client);
        there
    }

    #[test]
    fn one_user_has_few_connections_and_keeps_the_newest() {
        let mut clients = Clients::default();
        let mut kept: Vec<UnixStream> = (0..100).map(|_| take(&mut clients, 7)).collect();
        assert_eq!(uids(&clients), [7; MOST_OF_A_USER]);
        kept.push(take(&mut clients, 8));
        kept.push(take(&mut clients, 0));
        assert_eq!(clients.count_of(7), MOST_OF_A_USER);
        assert_eq!((clients.count_of(8), clients.count_of(0)), (1, 1));
    }

    #[test]
    fn many_users_leave_room_for_root_and_for_another_user() {
        let mut clients = Clients::default();
        let mut kept: Vec<UnixStream> = (1..=1000).map(|uid| take(&mut clients, uid)).collect();
        assert_eq!(clients.list.len(), MOST_OF_OTHERS);
        assert_eq!(clients.count_of(1000), 1);
        kept.extend((0..100).map(|_| take(&mut clients, 0)));
        assert_eq!(clients.count_of(0), MOST - MOST_OF_OTHERS);
        assert_eq!(clients.count_of(1000), 1);
    }

    #[test]
    fn a_client_with_a_request_is_not_closed_for_another() {
        let mut clients = Clients::default();
        let asked = |clients: &mut Clients| {
            let mut there = take(clients, 7);
            there.write_all(b"x\ny\n").unwrap();
            clients.list.last_mut().unwrap().read();
            there
        };
        let kept: Vec<UnixStream> = (0..MOST_OF_A_USER).map(|_| asked(&mut clients)).collect();
        let mut one_more = take(&mut clients, 7);
        assert_eq!(std::io::Read::read(&mut one_more, &mut [0]).unwrap(), 0, "closed");
        drop(kept);
    }
}

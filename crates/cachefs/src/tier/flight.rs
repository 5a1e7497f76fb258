//! One reader per missing block: the others wait for it.
//!
//! Whoever claims a missing block first leads: reads it, leaves it among the recent blocks if somebody waits, and lands. Who
//! waits looks again then, by the usual rules: it finds the block only if no write has voided the leader's ticket, and else
//! (and if the leader failed) reads it alone. Nobody waits while leading: all that can be claimed is read first. So no two
//! wait for each other.
//!
//! A thread that must not wait leaves a word instead ([`Flights::when_landed`]), which is called by whoever lands.
//!
//! The table does not grow; without room in it a block is read twice at worst.

use std::collections::HashMap;
use std::fmt;

use eke_cache_store::{Key, Ticket};

use crate::sync::{Condvar, Mutex, lock, wait};

/// Blocks that are being read at once: 16 threads, each with what it reads ahead.
const MOST: usize = 512;

/// The table.
#[derive(Debug)]
pub(super) struct Flights {
    under_way: Mutex<Table>,
    landed: Condvar,
}

#[derive(Debug)]
struct Table {
    flights: HashMap<Key, Flight>,
    /// Flights so far.
    begun: u64,
}

/// Called once, perhaps by another thread; must be short.
pub type Word = Box<dyn FnOnce() + Send>;

struct Flight {
    number: u64,
    ticket: Ticket,
    waiting: u32,
    words: Vec<Word>,
}

/// What a claim came to.
pub(super) enum Claim<'f> {
    /// Read it.
    Lead(Lead<'f>),
    /// Somebody reads it: wait.
    Wait(Wait),
    /// Somebody reads it, but perhaps from before a write; or the table is full. Read it, and let others do as they like.
    Alone,
}

/// The lead: lands when it is dropped.
pub(super) struct Lead<'f> {
    flights: &'f Flights,
    key: Key,
}

/// A flight to wait for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    key: Key,
    number: u64,
}

impl Flights {
    pub fn new() -> Self {
        let table = Table { flights: HashMap::with_capacity(MOST), begun: 0 };
        Self { under_way: Mutex::new(table), landed: Condvar::new() }
    }

    /// To be called with a ticket that was taken when the block was found missing.
    pub fn claim(&self, ticket: Ticket) -> Claim<'_> {
        let (mut table, key) = (lock(&self.under_way), ticket.key());
        if let Some(flight) = table.flights.get_mut(&key) {
            // Equal tickets: nothing was dropped between the leader's and this one.
            if flight.ticket != ticket {
                return Claim::Alone;
            }
            flight.waiting += 1;
            return Claim::Wait(Wait { key, number: flight.number });
        }
        if table.flights.len() == MOST {
            return Claim::Alone;
        }
        table.begun += 1;
        let flight = Flight { number: table.begun, ticket, waiting: 0, words: Vec::new() };
        table.flights.insert(key, flight);
        Claim::Lead(Lead { flights: self, key })
    }

    /// Is somebody reading the block?
    pub fn is_flying(&self, key: Key) -> bool {
        lock(&self.under_way).flights.contains_key(&key)
    }

    /// Has `word` called when the flight of this block has landed, or now if there is none.
    pub fn when_landed(&self, key: Key, word: Word) {
        let mut table = lock(&self.under_way);
        if let Some(flight) = table.flights.get_mut(&key) {
            flight.words.push(word);
        } else {
            drop(table);
            word();
        }
    }

    /// Waits until the flight has landed.
    pub fn wait(&self, flight: Wait) {
        let mut table = lock(&self.under_way);
        while table.flights.get(&flight.key).is_some_and(|f| f.number == flight.number) {
            table = wait(&self.landed, table);
        }
    }
}

impl fmt::Debug for Flight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flight")
            .field("ticket", &self.ticket)
            .field("waiting", &self.waiting)
            .finish_non_exhaustive()
    }
}

impl Flight {
    fn is_awaited(&self) -> bool {
        self.waiting > 0 || !self.words.is_empty()
    }
}

impl Lead<'_> {
    /// Lands. If somebody waits, `leave` is called before, to leave the block where they look for it.
    pub fn land(self, leave: impl FnOnce()) {
        if self.lands_alone() {
            std::mem::forget(self);
        } else {
            leave();
        }
    }

    /// Lands if nobody waits: in one step, so that nobody begins to wait in between and finds nothing.
    fn lands_alone(&self) -> bool {
        let mut table = lock(&self.flights.under_way);
        let alone = !table.flights.get(&self.key).is_some_and(Flight::is_awaited);
        if alone {
            table.flights.remove(&self.key);
        }
        alone
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let landed = lock(&self.flights.under_way).flights.remove(&self.key);
        self.flights.landed.notify_all();
        let words = landed.map(|flight| flight.words).unwrap_or_default();
        words.into_iter().for_each(|word| word());
    }
}

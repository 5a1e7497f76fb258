//! One reader per missing block; the others wait for it.
//!
//! The first thread that claims a missing block leads: it reads the block, keeps it among the recent ones if somebody waits,
//! and lands. Waiting threads then look the block up again. They find it only if no write has voided the leader's ticket;
//! otherwise, or if the leader failed, they read it alone. No thread waits while it leads: it first reads all that it could
//! claim. So no two wait for each other.
//!
//! A thread that must not wait leaves a callback ([`Flights::when_landed`]), which the landing thread calls.
//!
//! The table does not grow. Without room in it a block is at worst read twice.

use std::collections::HashMap;
use std::fmt;

use eke_cache_store::{Key, Ticket};

use crate::sync::{Condvar, Mutex, lock, wait};

/// Blocks that are read at once: 16 threads, each with its readahead.
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

/// Called once, perhaps by another thread. It must be short.
pub type Callback = Box<dyn FnOnce() + Send>;

struct Flight {
    number: u64,
    ticket: Ticket,
    waiting: u32,
    callbacks: Vec<Callback>,
}

/// The result of a claim.
pub(super) enum Claim<'f> {
    /// Read the block.
    Lead(Lead<'f>),
    /// Another thread reads it: wait.
    Wait(Wait),
    /// Another thread reads it, but perhaps from before a write; or the table is full. Read it alone.
    Alone,
}

/// The right to read a block. Dropping it lands.
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

    /// Claims a block, with the ticket that was taken when it was found missing.
    pub fn claim(&self, ticket: Ticket) -> Claim<'_> {
        let (mut table, key) = (lock(&self.under_way), ticket.key());
        if let Some(flight) = table.flights.get_mut(&key) {
            // Equal tickets: nothing was dropped between the leader's ticket and this one.
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
        let flight = Flight { number: table.begun, ticket, waiting: 0, callbacks: Vec::new() };
        table.flights.insert(key, flight);
        Claim::Lead(Lead { flights: self, key })
    }

    /// True if a thread is reading the block.
    pub fn is_flying(&self, key: Key) -> bool {
        lock(&self.under_way).flights.contains_key(&key)
    }

    /// Calls `callback` when this block's flight has landed, or now if there is none.
    pub fn when_landed(&self, key: Key, callback: Callback) {
        let mut table = lock(&self.under_way);
        if let Some(flight) = table.flights.get_mut(&key) {
            flight.callbacks.push(callback);
        } else {
            drop(table);
            callback();
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
        self.waiting > 0 || !self.callbacks.is_empty()
    }
}

impl Lead<'_> {
    /// Lands. If somebody waits, first calls `leave`, to put the block where they look it up.
    pub fn land(self, leave: impl FnOnce()) {
        if self.lands_alone() {
            std::mem::forget(self);
        } else {
            leave();
        }
    }

    /// Lands if nobody waits, in one step, so that nobody begins to wait in between and then finds nothing.
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
        let callbacks = landed.map(|flight| flight.callbacks).unwrap_or_default();
        callbacks.into_iter().for_each(|callback| callback());
    }
}

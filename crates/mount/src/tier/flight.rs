//! One reader per missing block: the others wait for it.
//!
//! Whoever claims a missing block first leads: reads it, leaves it among the recent blocks if somebody waits, and lands. Who
//! waits looks again then, by the usual rules: it finds the block only if no write has voided the leader's ticket, and else
//! (and if the leader failed) reads it alone. Nobody waits while leading: all that can be claimed is read first. So no two
//! wait for each other.
//!
//! The table has a fixed size; without room in it a block is read twice at worst.

use eke_cache::{Key, Ticket};

use crate::sync::{Condvar, Mutex, lock, wait};

/// Blocks that are being read at once: more than threads ask for.
const SLOTS: usize = 256;

/// The table.
#[derive(Debug)]
pub(super) struct Flights {
    slots: Mutex<Vec<Slot>>,
    landed: Condvar,
}

#[derive(Debug, Default)]
struct Slot {
    /// `None`: free.
    ticket: Option<Ticket>,
    waiting: u32,
    /// Flights that have landed here.
    landings: u64,
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
    slot: usize,
}

/// A flight to wait for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    slot: usize,
    landings: u64,
}

impl Flights {
    pub fn new() -> Self {
        Self { slots: Mutex::new((0..SLOTS).map(|_| Slot::default()).collect()), landed: Condvar::new() }
    }

    /// To be called with a ticket that was taken when the block was found missing.
    pub fn claim(&self, ticket: Ticket) -> Claim<'_> {
        let mut slots = lock(&self.slots);
        if let Some(slot) = find(&slots, Some(ticket.key())) {
            let flight = &mut slots[slot];
            // Equal tickets: nothing was dropped between the leader's and this one.
            if flight.ticket != Some(ticket) {
                return Claim::Alone;
            }
            flight.waiting += 1;
            return Claim::Wait(Wait { slot, landings: flight.landings });
        }
        let Some(slot) = find(&slots, None) else { return Claim::Alone };
        slots[slot].ticket = Some(ticket);
        Claim::Lead(Lead { flights: self, slot })
    }

    /// Waits until the flight has landed.
    pub fn wait(&self, flight: Wait) {
        let mut slots = lock(&self.slots);
        while slots[flight.slot].landings == flight.landings {
            slots = wait(&self.landed, slots);
        }
    }
}

fn find(slots: &[Slot], key: Option<Key>) -> Option<usize> {
    slots.iter().position(|slot| slot.ticket.map(|ticket| ticket.key()) == key)
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
        let mut slots = lock(&self.flights.slots);
        let alone = slots[self.slot].waiting == 0;
        if alone {
            slots[self.slot].ticket = None;
        }
        alone
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let mut slots = lock(&self.flights.slots);
        let slot = &mut slots[self.slot];
        *slot = Slot { ticket: None, waiting: 0, landings: slot.landings + 1 };
        drop(slots);
        self.flights.landed.notify_all();
    }
}

//! A queue of small numbers with removal from its middle.

const NONE: u32 = u32::MAX;

/// Numbers below a fixed limit, from old to new. Each is in it at most once.
#[derive(Debug, Clone)]
pub struct List {
    /// The neighbours: older, newer. The last one is the list's own: its newer is the oldest number, its older the newest.
    links: Vec<(u32, u32)>,
    present: Vec<bool>,
}

impl List {
    /// An empty list of numbers below `limit`.
    pub fn new(limit: usize) -> Self {
        let mut links = vec![(NONE, NONE); limit + 1];
        links[limit] = (limit as u32, limit as u32);
        Self { links, present: vec![false; limit] }
    }

    /// Whether the list has `number`.
    pub fn has(&self, number: u32) -> bool {
        self.present[number as usize]
    }

    /// Adds a number that it does not have, as the newest.
    pub fn push(&mut self, number: u32) {
        let own = self.present.len();
        let newest = self.links[own].0;
        self.links[number as usize] = (newest, own as u32);
        self.links[newest as usize].1 = number;
        self.links[own].0 = number;
        self.present[number as usize] = true;
    }

    /// Removes a number that it has.
    pub fn remove(&mut self, number: u32) {
        let (older, newer) = self.links[number as usize];
        self.links[older as usize].1 = newer;
        self.links[newer as usize].0 = older;
        self.present[number as usize] = false;
    }

    /// Removes the oldest number.
    pub fn pop(&mut self) -> Option<u32> {
        let own = self.present.len();
        let oldest = self.links[own].1;
        (oldest as usize != own).then(|| {
            self.remove(oldest);
            oldest
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_leave_in_order_except_those_removed_before() {
        let mut list = List::new(5);
        (0..5).for_each(|n| list.push(n));
        list.remove(0);
        list.remove(3);
        list.push(0);
        assert!(list.has(0) && !list.has(3));
        assert_eq!(std::iter::from_fn(|| list.pop()).collect::<Vec<_>>(), [1, 2, 4, 0]);
        assert_eq!(list.pop(), None);
    }
}

//! The bytes that may be written in a day, and the page that remembers what was.
//!
//! Each write is counted before it is made, on the disk too, so neither a crash nor another mount begins the day anew.

use twox_hash::XxHash3_64;

/// The bytes of the page.
pub const PAGE: usize = 32;

const MAGIC: [u8; 8] = *b"ekeday1\n";
const DAY_S: u64 = 86_400;

/// What was written on one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Day {
    /// Days since 1970.
    pub number: u64,
    /// Bytes written since it began.
    pub written: u64,
}

impl Day {
    /// Counts `bytes` at this time, in seconds since 1970, if they are within the day's budget.
    #[must_use]
    pub fn spend(&mut self, now_s: u64, bytes: u64, budget: u64) -> bool {
        let written = self.written_at(now_s);
        let is_within = written.saturating_add(bytes) <= budget;
        if is_within {
            *self = Self { number: now_s / DAY_S, written: written + bytes };
        }
        is_within
    }

    /// The bytes written on the day of this time.
    pub fn written_at(&self, now_s: u64) -> u64 {
        if self.number == now_s / DAY_S { self.written } else { 0 }
    }

    /// The page.
    pub fn page(&self) -> [u8; PAGE] {
        let mut page = [0; PAGE];
        page[..8].copy_from_slice(&MAGIC);
        page[8..16].copy_from_slice(&self.number.to_le_bytes());
        page[16..24].copy_from_slice(&self.written.to_le_bytes());
        let sum = XxHash3_64::oneshot(&page[..24]);
        page[24..].copy_from_slice(&sum.to_le_bytes());
        page
    }

    /// The day of a page. `None`: it is none, as in a new file.
    pub fn parse(page: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u64::from_le_bytes(page.get(at..at + 8)?.try_into().ok()?));
        let is_whole = page.get(..8)? == MAGIC && XxHash3_64::oneshot(page.get(..24)?) == word(24)?;
        is_whole.then_some(Self { number: word(8)?, written: word(16)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_its_budget_and_no_more() {
        let mut day = Day::default();
        let noon = 20_000 * DAY_S + DAY_S / 2;
        assert!(day.spend(noon, 60, 100) && !day.spend(noon + 1, 41, 100) && day.spend(noon + 2, 40, 100));
        assert_eq!((day.written_at(noon), day.written_at(noon + DAY_S)), (100, 0));
        assert!(!day.spend(noon + 3, 1, 100) && day.spend(noon + DAY_S, 1, 100));
        assert_eq!(day, Day { number: 20_001, written: 1 });
        assert!(!day.spend(noon, u64::MAX, 100) && !day.spend(noon + DAY_S, u64::MAX, u64::MAX - 1));
    }

    #[test]
    fn a_page_comes_back_and_no_other_bytes_do() {
        let day = Day { number: 20_000, written: 7 << 30 };
        assert_eq!(Day::parse(&day.page()), Some(day));
        for at in 0..PAGE {
            let mut page = day.page();
            page[at] ^= 1;
            assert_eq!(Day::parse(&page), None, "{at}");
        }
        assert_eq!((Day::parse(&[0; PAGE]), Day::parse(&[])), (None, None));
    }
}

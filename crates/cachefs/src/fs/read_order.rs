//! Which of the reads that wait for the disk is next. Pure: the time is an argument.
//!
//! A file that is read on is finished before a later one is: if a disk reads all of them in turn, a piece at a time, each takes as long as
//! all together. So the oldest *turn* is first. A turn begins when a file is first read, or read again after a pause, and ends after
//! a second of the disk's time; then the file goes behind the others, so a large one keeps nobody waiting for long. A file that takes less
//! than its share of the disk, because it is played, keeps its turn.
//!
//! Few long reads are under way at once, since each keeps the disk busy, and those behind them would only make it seek.
//!
//! Short reads (of small files, by small requests, and anywhere else than where a file was read up to) have a third of the places to
//! themselves. They take little of the disk's time, and their readers wait for nothing else.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use eke_cache_store::FileId;

use crate::tier::LONG_REQUEST;

/// A file up to this size is read at once, and counts as short.
const SHORT_FILE: u64 = 512 << 10;
/// A read goes on if it begins no further than this from the end of the last one: some was read ahead, and the kernel's requests may
/// overtake each other.
const REACH: u64 = 4 << 20;
/// One place in so many is for short reads.
const EACH: u32 = 3;
/// The most long reads at once. Most are of 1 or 2 MiB, so these also keep a fast disk or a far server busy.
const LONG_AT_ONCE: usize = 4;
/// A long read that takes longer counts no more: it may hang alone.
const HANGS: Duration = Duration::from_secs(2);
/// The disk's time of one turn.
const TURN: Duration = Duration::from_secs(1);
/// A file that is not read for so long begins a new turn.
const PAUSE: Duration = Duration::from_secs(10);
/// Files whose turns are known.
const MOST: usize = 1024;

/// What is to be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub file: FileId,
    pub offset: u64,
    pub len: usize,
    /// The file's size, if it is known without asking.
    pub size: Option<u64>,
}

/// Whether a read takes much of the disk's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    Short,
    /// With the time when it began.
    Long(Instant),
}

/// The reads that wait, each with its job.
#[derive(Debug)]
pub(super) struct ReadOrder<J> {
    /// With the time of their arrival.
    short: VecDeque<(Instant, J)>,
    /// By the begin of the file's turn, then in the order of arrival.
    long: BTreeMap<(Instant, u64), J>,
    turns: HashMap<FileId, Turn>,
    arrived: u64,
    /// Places since one was given to a short read.
    since_short: u32,
    /// Reads under way.
    reading: u32,
    /// The beginnings of the long ones of these.
    reading_long: Vec<Instant>,
}

/// A file that is being read.
#[derive(Debug, Clone, Copy)]
struct Turn {
    since: Instant,
    /// The disk's time in it.
    used: Duration,
    /// The end of the last request.
    end: u64,
    seen: Instant,
}

impl<J> Default for ReadOrder<J> {
    fn default() -> Self {
        let (short, long, turns) = (VecDeque::new(), BTreeMap::new(), HashMap::new());
        Self { short, long, turns, arrived: 0, since_short: 0, reading: 0, reading_long: Vec::new() }
    }
}

impl<J> ReadOrder<J> {
    /// A read arrives.
    pub fn push(&mut self, asked: &Asked, job: J, now: Instant) {
        let is_small = asked.size.is_some_and(|size| size <= SHORT_FILE);
        let turn = if is_small { None } else { self.turn(asked, now) };
        if is_small || asked.len < LONG_REQUEST || (turn.is_none() && asked.offset > 0) {
            return self.short.push_back((now, job));
        }
        self.arrived += 1;
        self.long.insert((turn.unwrap_or(now), self.arrived), job);
    }

    /// The begin of the file's turn if this read goes on where it was read up to; `None` if it does not.
    fn turn(&mut self, asked: &Asked, now: Instant) -> Option<Instant> {
        let end = asked.offset.saturating_add(asked.len as u64);
        let waiting = u32::try_from(self.long.len()).unwrap_or(u32::MAX);
        let readers = waiting.saturating_add(self.reading).saturating_add(1);
        if let Some(turn) = self.turns.get_mut(&asked.file) {
            let goes_on = asked.offset > 0 && asked.offset.abs_diff(turn.end) <= REACH;
            if turn.is_over(now, readers) {
                (turn.since, turn.used) = (now, Duration::ZERO);
            }
            (turn.end, turn.seen) = (end, now);
            return goes_on.then_some(turn.since);
        }
        if self.turns.len() >= MOST {
            self.forget_half();
        }
        self.turns.insert(asked.file, Turn { since: now, used: Duration::ZERO, end, seen: now });
        None
    }

    /// Forgets the half of the files that nobody has read for longest.
    fn forget_half(&mut self) {
        let mut seen: Vec<Instant> = self.turns.values().map(|turn| turn.seen).collect();
        let middle = seen.len() / 2;
        let (_, oldest_kept, _) = seen.select_nth_unstable(middle);
        let oldest_kept = *oldest_kept;
        self.turns.retain(|_, turn| turn.seen > oldest_kept);
    }

    /// The next read. Call [`ReadOrder::done`] when it is. `None`: none waits, or too many long ones are under way.
    pub fn pop(&mut self, now: Instant) -> Option<(J, Length)> {
        let oldest = self.long.first_key_value().map(|((since, _), _)| *since);
        let is_under_way = |since: &&Instant| now.saturating_duration_since(**since) < HANGS;
        let under_way = self.reading_long.iter().filter(is_under_way).count();
        let oldest = oldest.filter(|_| under_way < LONG_AT_ONCE);
        let is_short = match (self.short.front(), oldest) {
            (Some((arrived, _)), Some(since)) => *arrived <= since || self.since_short >= EACH - 1,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => return None,
        };
        self.reading += 1;
        if is_short {
            self.since_short = 0;
            return self.short.pop_front().map(|(_, job)| (job, Length::Short));
        }
        self.since_short = self.since_short.saturating_add(1);
        self.reading_long.push(now);
        self.long.pop_first().map(|(_, job)| (job, Length::Long(now)))
    }

    /// True if long reads wait: for their place, or for one that hangs.
    pub fn has_long(&self) -> bool {
        !self.long.is_empty()
    }

    /// A read of this file took so long. Reads at once share the disk.
    pub fn done(&mut self, (file, length): (FileId, Length), took: Duration, now: Instant) {
        let share = took / self.reading.max(1);
        self.reading = self.reading.saturating_sub(1);
        if let Length::Long(since) = length {
            let at = self.reading_long.iter().position(|began| *began == since);
            at.map(|at| self.reading_long.swap_remove(at));
        }
        if let Some(turn) = self.turns.get_mut(&file) {
            turn.used = turn.used.saturating_add(share);
            turn.seen = now;
        }
    }
}

impl Turn {
    /// `readers`: how many share the disk.
    fn is_over(&self, now: Instant, readers: u32) -> bool {
        let is_share = self.used.saturating_mul(readers) >= now.saturating_duration_since(self.since);
        (self.used >= TURN && is_share) || now.saturating_duration_since(self.seen) >= PAUSE
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MIB: u64 = 1 << 20;
    const LEN: usize = 128 << 10;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// The next read, which takes no time.
    fn pop_and_end<J>(order: &mut ReadOrder<J>) -> Option<J> {
        let (job, length) = order.pop(Instant::now())?;
        order.done((FileId(0), length), ms(0), Instant::now());
        Some(job)
    }

    fn asked(file: u64, offset: u64, size: u64) -> Asked {
        Asked { file: FileId(file), offset, len: LEN, size: Some(size) }
    }

    /// The order of reads of files that each ask for their next two MiB as soon as they have the last ones, on a disk that takes 50 ms for
    /// each; the files are begun a millisecond apart.
    fn read_all(order: &mut ReadOrder<u64>, files: &[(u64, u64)], began: Instant) -> Vec<u64> {
        let (mut now, mut read) = (began, Vec::new());
        let mut at: HashMap<u64, u64> = HashMap::new();
        for (file, size) in files {
            now += ms(1);
            order.push(&asked(*file, 0, *size), *file, now);
        }
        while let Some((file, length)) = order.pop(now) {
            read.push(file);
            now += ms(50);
            order.done((FileId(file), length), ms(50), now);
            let (next, size) = (at.entry(file).or_default(), files.iter().find(|f| f.0 == file).unwrap().1);
            *next += 2 * MIB;
            if *next < size {
                order.push(&asked(file, *next, size), file, now);
            }
        }
        read
    }

    #[test]
    fn a_file_is_finished_before_a_later_one() {
        let read =
            read_all(&mut ReadOrder::default(), &[(1, 8 * MIB), (2, 6 * MIB), (3, 4 * MIB)], Instant::now());
        assert_eq!(read, [1, 1, 1, 1, 2, 2, 2, 3, 3]);
    }

    #[test]
    fn a_large_file_goes_behind_others_after_a_second() {
        let read = read_all(&mut ReadOrder::default(), &[(1, 100 * MIB), (2, 8 * MIB)], Instant::now());
        assert_eq!(read[..26], [[1; 20].as_slice(), &[2, 2, 2, 2, 1, 1]].concat());
        assert_eq!(read.len(), 54);
    }

    /// Of it two MiB are read each two seconds, beside many that are read as fast as they come.
    #[test]
    fn a_file_that_takes_less_than_its_share_of_the_disk_keeps_its_turn() {
        let (mut order, mut now, mut is_first) = (ReadOrder::default(), Instant::now(), Vec::new());
        let (mut played, mut copied) = (0, [0; 20]);
        order.push(&asked(99, 0, 1 << 30), 99, now);
        (0..20).for_each(|file| order.push(&asked(file, 0, 1 << 40), file, now + ms(1)));
        for round in 1..2000 {
            if round % 40 == 0 {
                played += 2 * MIB;
                order.push(&asked(99, played, 1 << 30), 99, now);
                is_first.push(order.long.first_key_value().is_some_and(|(_, file)| *file == 99));
            }
            let (file, length) = order.pop(now).unwrap();
            now += ms(50);
            order.done((FileId(file), length), ms(50), now);
            if let Some(at) = copied.get_mut(file as usize) {
                *at += 2 * MIB;
                order.push(&asked(file, *at, 1 << 40), file, now);
            }
        }
        assert_eq!(is_first, [true; 49]);
    }

    /// How far each file is read by fetchers that read twelve at once, on a disk that takes 40 ms for each, beside so many short reads for each
    /// long one.
    fn read_at_once(files: usize, shorts: usize) -> Vec<u64> {
        let (mut order, mut now) = (ReadOrder::default(), Instant::now());
        let (mut at, mut under_way) = (vec![0u64; files], VecDeque::new());
        (0..files).for_each(|file| order.push(&asked(file as u64, 0, 1 << 40), file, now));
        for round in 0..4000 {
            (0..shorts).for_each(|nth| {
                let file = 1000 + round * shorts + nth;
                order.push(&asked(file as u64, 0, 4096), file, now);
            });
            while under_way.len() < 12 {
                let Some((file, length)) = order.pop(now) else { break };
                under_way.push_back((file, length, now));
            }
            now += ms(40);
            let Some((file, length, since)) = under_way.pop_front() else { continue };
            order.done((FileId(file as u64), length), now - since, now);
            if let Some(at) = at.get_mut(file) {
                *at += 2 * MIB;
                order.push(&asked(file as u64, *at, 1 << 40), file, now);
            }
        }
        at
    }

    #[test]
    fn no_file_waits_for_the_end_of_others() {
        for (files, shorts) in [(6, 0), (7, 0), (9, 0), (9, 1), (16, 2)] {
            let at = read_at_once(files, shorts);
            let (least, most) = (at.iter().min().unwrap(), at.iter().max().unwrap());
            assert!(*least > most / 2, "{files} files, {shorts} short reads: {at:?}");
        }
    }

    #[test]
    fn short_reads_have_a_third_of_the_places() {
        let (mut order, now) = (ReadOrder::default(), Instant::now());
        for block in 0..6 {
            order.push(&asked(1, block * LEN as u64, 1 << 30), "long", now);
        }
        for file in 2..5 {
            order.push(&asked(file, 0, 4096), "short", now + ms(1));
        }
        let read: Vec<_> = std::iter::from_fn(|| pop_and_end(&mut order)).collect();
        assert_eq!(read, ["long", "long", "short", "long", "long", "short", "long", "long", "short"]);
    }

    #[test]
    fn a_read_is_short_for_a_small_file_a_small_beginning_and_anywhere_inside() {
        let is_short = |first: Option<Asked>, read: Asked| {
            let (mut order, now) = (ReadOrder::default(), Instant::now());
            first.into_iter().for_each(|first| order.push(&first, (), now));
            let before = order.short.len();
            order.push(&read, (), now);
            order.short.len() > before
        };
        let large = |offset, len| Asked { file: FileId(1), offset, len, size: Some(1 << 30) };
        let table = [
            (None, asked(1, 0, SHORT_FILE), true),
            (None, asked(1, 0, SHORT_FILE + 1), false),
            (None, Asked { size: None, ..asked(1, 0, 0) }, false),
            (None, large(0, 4096), true),
            (None, large(64 * MIB, LEN), true),
            (Some(large(0, LEN)), large(LEN as u64, LEN), false),
            (Some(large(0, LEN)), large(LEN as u64, 8192), true),
            (Some(large(0, LEN)), large(LEN as u64 + 2 * MIB, LEN), false),
            (Some(large(2 * LEN as u64, LEN)), large(LEN as u64, LEN), false),
            (Some(large(0, LEN)), large(64 * MIB, LEN), true),
            (Some(large(64 * MIB, LEN)), large(64 * MIB + LEN as u64, LEN), false),
            (Some(large(64 * MIB, LEN)), large(32 * MIB, LEN), true),
        ];
        for (first, read, expected) in table {
            assert_eq!(is_short(first, read), expected, "{first:?}, then {read:?}");
        }
    }

    #[test]
    fn a_pause_begins_a_new_turn() {
        let (mut order, now) = (ReadOrder::default(), Instant::now());
        order.push(&asked(1, 0, 1 << 30), 1, now);
        order.push(&asked(2, 0, 1 << 30), 2, now + ms(1));
        while order.pop(now).is_some() {}
        order.done((FileId(1), Length::Long(now)), ms(1), now + ms(10));
        order.done((FileId(2), Length::Long(now)), ms(1), now + ms(900));
        order.push(&asked(1, LEN as u64, 1 << 30), 1, now + ms(10_010));
        let later = now + ms(10_020);
        order.push(&asked(2, LEN as u64, 1 << 30), 2, later);
        assert_eq!(order.pop(later), Some((2, Length::Long(later))));
    }

    #[test]
    fn few_long_reads_are_under_way_at_once_and_any_number_of_short_ones() {
        let (mut order, now) = (ReadOrder::default(), Instant::now());
        for file in 1..=20 {
            order.push(&asked(file, 0, 1 << 30), file, now);
            order.push(&asked(100 + file, 0, 4096), 100 + file, now);
        }
        let at_once: Vec<_> = std::iter::from_fn(|| order.pop(now)).collect();
        let long = at_once.iter().filter(|(_, length)| matches!(length, Length::Long(_))).count();
        assert_eq!((long, at_once.len()), (4, 24));
        order.done((FileId(1), Length::Long(now)), ms(1), now);
        let later = now + ms(1);
        assert_eq!(order.pop(later), Some((5, Length::Long(later))));
        assert_eq!(order.pop(later), None);
        let hung = now + ms(2500);
        assert_eq!(order.pop(hung), Some((6, Length::Long(hung))), "four hang alone");
    }

    #[test]
    fn reads_at_once_share_the_disks_time() {
        let (mut order, now) = (ReadOrder::default(), Instant::now());
        for file in 1..=4 {
            order.push(&asked(file, 0, 1 << 30), file, now);
        }
        while order.pop(now).is_some() {}
        order.done((FileId(1), Length::Long(now)), ms(1000), now);
        assert_eq!(order.turns[&FileId(1)].used, ms(250));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_a_place_is_waited_for_with_a_bound(
            reads in prop::collection::vec((0..40u64, 0..64u64, prop::bool::ANY), 1..200),
        ) {
            let (mut order, mut now) = (ReadOrder::default(), Instant::now());
            let (mut waiting, mut read) = (0usize, 0usize);
            for (nth, (file, block, pops)) in reads.iter().enumerate() {
                now += ms(7);
                order.push(&asked(*file, block * MIB, (file + 1) * MIB / 4), nth, now);
                waiting += 1;
                if *pops {
                    let next = order.pop(now);
                    prop_assert!(next.is_some());
                    let (job, length) = next.unwrap_or((0, Length::Short));
                    order.done((FileId(reads[job].0), length), ms(30), now);
                    read += 1;
                }
            }
            while pop_and_end(&mut order).is_some() {
                read += 1;
            }
            prop_assert_eq!(read, waiting);
        }

        #[test]
        fn no_file_waits_for_longer_than_a_turn_of_each_other(others in 1..30u64) {
            let files: Vec<_> = (1..=others).map(|file| (file, 200 * MIB)).chain([(99, 4 * MIB)]).collect();
            let read = read_all(&mut ReadOrder::default(), &files, Instant::now());
            let first = read.iter().position(|file| *file == 99).unwrap() as u64;
            prop_assert!(first <= others * 20, "{} reads before it", first);
        }
    }

    #[test]
    fn few_turns_are_remembered() {
        let (mut order, mut now) = (ReadOrder::default(), Instant::now());
        for file in 0..10 * MOST as u64 {
            now += ms(1);
            order.push(&asked(file, 0, 1 << 30), (), now);
            assert!(order.turns.len() <= MOST);
        }
        assert!(order.turns.contains_key(&FileId(10 * MOST as u64 - 1)));
    }
}

//! Copies anonymous pages of running processes into a [`Sample`].

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use eke_linux::{Root, read};
use eke_statistics::Random;

use super::decode::{self, PagemapEntry};
use super::quota::quotas;
use super::sample::Sample;
use crate::error::{Error, Result};

/// Pagemap entries that are read at once: those of one page table.
const CHUNK_PAGES: u64 = 512;
/// The most chunks read of one process: 8,192 chunks are 16 GiB of address space.
const CHUNKS: usize = 8192;

/// The least time to find a process's pages: reading its list of mappings takes a part of it.
const LEAST_SHARE: Duration = Duration::from_millis(2);
/// Rounds of copying. Each takes its part of every process, so when the time is over, the pages are those of all processes and not of the first ones.
const COPYING_ROUNDS: usize = 8;

/// At most `requested` pages of eke's own program, for a user who may read no process: programs' memory compresses better than that. `None` if it
/// cannot be read either.
///
/// # Errors
/// There is no memory for the copy.
pub(crate) fn stand_in(root: &Root, requested: usize, unreadable_processes: u64) -> Result<Option<Sample>> {
    let Ok(program) = File::open(root.path("proc/self/exe")) else { return Ok(None) };
    let mut sample = Sample::new(requested)?;
    sample.counts.unreadable_processes = unreadable_processes;
    let size = rustix::param::page_size() as u64;
    for at in 0..requested as u64 {
        let slot = sample.next_page();
        if program.read_exact_at(slot, at * size).is_err() {
            break;
        }
        let content = decode::content(slot);
        sample.count(content, true);
    }
    Ok((sample.distinct() > 0).then_some(sample))
}

struct Process {
    pid: u32,
    status: decode::Status,
}

impl Process {
    fn resident_pages(&self) -> u64 {
        self.status.anonymous_bytes.unwrap_or(0) / rustix::param::page_size() as u64
    }
}

/// The address of a page that was present when the pagemap was read.
#[derive(Clone, Copy)]
struct PageAddress {
    address: u64,
    exclusive: bool,
}

/// Samples `requested` anonymous pages, or all there are, spread over the processes by resident anonymous size and at random within each; with `only`,
/// over these processes. Excludes eke's own processes, kernel threads, locked memory, shared memory, and the kernel's shared zero page. A process that
/// ends in between is skipped. Three fifths of `time` are for finding pages, the rest for copying; each ends on time with the pages so far, which are of
/// all processes.
///
/// # Errors
/// There is no memory for the copy. Unreadable processes are counted, and no error.
pub(crate) fn sample(
    root: &Root,
    only: Option<&[u32]>,
    requested: usize,
    time: Duration,
    random: &mut Random,
) -> Result<Sample> {
    let (scan_until, copy_until) = (Instant::now() + time.mul_f64(0.6), Instant::now() + time);
    let mut processes = candidates(root, only);
    random.shuffle(&mut processes);
    let resident: Vec<u64> = processes.iter().map(Process::resident_pages).collect();
    let caps: Vec<usize> = resident.iter().map(|n| *n as usize).collect();
    let first = quotas(&resident, &caps, requested);
    let mut sources: Vec<Source> = processes.iter().map(|process| Source::new(process.pid)).collect();
    let (mut left, mut is_cut) = (resident.iter().fold(0, |sum: u64, n| sum.saturating_add(*n)), false);
    for (((source, process), quota), pages) in sources.iter_mut().zip(&processes).zip(&first).zip(&resident) {
        // What one process does not need of its share is for the next ones.
        let rest = scan_until.saturating_duration_since(Instant::now());
        let until = Instant::now() + rest.mul_f64(*pages as f64 / left as f64).max(LEAST_SHARE).min(rest);
        left = left.saturating_sub(*pages);
        source.take(scan(root, process, enough(*quota), until, random));
        is_cut |= !source.is_refused && source.addresses.len() < *quota && Instant::now() >= until;
    }
    let found: Vec<usize> = sources.iter().map(|source| source.addresses.len()).collect();
    for (source, quota) in sources.iter_mut().zip(quotas(&resident, &found, requested)) {
        random.shuffle(&mut source.addresses);
        source.addresses.truncate(quota);
    }
    let pages = sources.iter().map(|source| source.addresses.len()).sum();
    let mut sample = Sample::new(pages)?;
    sample.is_cut = is_cut;
    for round in 0..COPYING_ROUNDS {
        for source in &mut sources {
            source.copy(root, round, copy_until, &mut sample);
        }
    }
    sample.is_cut |= Instant::now() >= copy_until;
    sample.counts.processes = sources.iter().filter(|source| source.copied).count() as u64;
    sample.counts.unreadable_processes = sources.iter().filter(|source| source.is_refused).count() as u64;
    Ok(sample)
}

/// The pages to copy of one process.
struct Source {
    pid: u32,
    addresses: Vec<PageAddress>,
    copied: bool,
    is_refused: bool,
}

impl Source {
    fn new(pid: u32) -> Self {
        Self { pid, addresses: Vec::new(), copied: false, is_refused: false }
    }

    fn take(&mut self, found: Result<Vec<PageAddress>>) {
        self.is_refused = found.as_ref().is_err_and(is_refusal);
        self.addresses = found.unwrap_or_default();
    }

    /// Copies one round's part.
    fn copy(&mut self, root: &Root, round: usize, deadline: Instant, sample: &mut Sample) {
        let from = |round| self.addresses.len() * round / COPYING_ROUNDS;
        let part = &self.addresses[from(round)..from(round + 1)];
        let before = sample.counts.sampled;
        let copied = copy(root, self.pid, part, deadline, sample);
        self.copied |= sample.counts.sampled > before;
        self.is_refused |= copied.is_err_and(|e| is_refusal(&e));
    }
}

/// More than the quota, to make up for other processes and to choose from more than a few chunks.
fn enough(quota: usize) -> usize {
    if quota == 0 { 0 } else { quota * 4 + 256 }
}

fn is_refusal(error: &Error) -> bool {
    match error {
        Error::Kernel(e) => e.is_permission(),
        Error::Io { source, .. } => source.kind() == io::ErrorKind::PermissionDenied,
        _ => false,
    }
}

fn candidates(root: &Root, only: Option<&[u32]>) -> Vec<Process> {
    let own = rustix::process::getpid().as_raw_nonzero().get().unsigned_abs();
    let others = read::answering(root).into_iter().filter(|pid| *pid != own || !root.is_host());
    let requested = |pid: &u32| only.is_none_or(|only| only.contains(pid));
    let process =
        |pid| Some(Process { pid, status: decode::status(&root.read(format!("proc/{pid}/status")).ok()?) });
    others
        .filter(requested)
        .filter_map(process)
        .filter(|p| p.resident_pages() > 0 && !decode::is_ours(&p.status.name))
        .collect()
}

/// Finds about `enough` private anonymous pages in random chunks of the address space.
fn scan(
    root: &Root,
    process: &Process,
    enough: usize,
    deadline: Instant,
    random: &mut Random,
) -> Result<Vec<PageAddress>> {
    if enough == 0 || Instant::now() >= deadline {
        return Ok(Vec::new());
    }
    let pid = process.pid;
    let mut ranges = decode::private_ranges(&root.read(format!("proc/{pid}/maps"))?);
    if process.status.locked_bytes > 0 {
        let pinned = decode::pinned_ranges(&root.read(format!("proc/{pid}/smaps"))?);
        let pinned: HashSet<Range<u64>> = pinned.into_iter().collect();
        ranges.retain(|r| !pinned.contains(r));
    }
    let path = root.path(format!("proc/{pid}/pagemap"));
    let pagemap = File::open(&path).map_err(|e| Error::io("open", &path, e))?;
    let mut addresses = Vec::new();
    for chunk in chunks(&ranges, rustix::param::page_size() as u64, random) {
        if addresses.len() >= enough || Instant::now() >= deadline {
            break;
        }
        addresses.extend(present(&pagemap, chunk).map_err(|e| Error::io("read", &path, e))?);
    }
    Ok(addresses)
}

/// At most [`CHUNKS`] chunks of the ranges, each once, in random order. They are not listed before: a process may map all of the address space, which has
/// 67 million.
fn chunks(ranges: &[Range<u64>], page_bytes: u64, random: &mut Random) -> Vec<Range<u64>> {
    let step = CHUNK_PAGES * page_bytes;
    let mut total = 0_u64;
    let up_to_the_end = |r: &Range<u64>| {
        total = total.saturating_add((r.end - r.start).div_ceil(step));
        total
    };
    let ends: Vec<u64> = ranges.iter().map(up_to_the_end).collect();
    let chunk = |number: u64| {
        let at = ends.partition_point(|end| *end <= number);
        let before = if at == 0 { 0 } else { ends[at - 1] };
        let Range { start, end } = ranges[at];
        let from = start + (number - before) * step;
        from..end.min(from.saturating_add(step))
    };
    numbers(total, random).into_iter().map(chunk).collect()
}

/// At most [`CHUNKS`] numbers below `total`, each once, in random order.
fn numbers(total: u64, random: &mut Random) -> Vec<u64> {
    if total <= 2 * CHUNKS as u64 {
        let mut all: Vec<u64> = (0..total).collect();
        random.shuffle(&mut all);
        all.truncate(CHUNKS);
        return all;
    }
    let mut drawn = HashSet::with_capacity(CHUNKS);
    std::iter::repeat_with(|| random.below(total))
        .filter(|number| drawn.insert(*number))
        .take(CHUNKS)
        .collect()
}

/// The private anonymous pages of a chunk; none if the file ends early (an impossible address).
fn present(pagemap: &File, chunk: Range<u64>) -> io::Result<Vec<PageAddress>> {
    let page_bytes = rustix::param::page_size() as u64;
    let mut raw = [0; CHUNK_PAGES as usize * 8];
    let requested = ((chunk.end - chunk.start) / page_bytes * 8) as usize;
    let got =
        pagemap.read_at(&mut raw[..requested.min(CHUNK_PAGES as usize * 8)], chunk.start / page_bytes * 8)?;
    let entry = |bytes: &[u8]| PagemapEntry(bytes.try_into().map_or(0, u64::from_ne_bytes));
    let entries = raw[..got].chunks_exact(8).map(entry).zip(chunk.step_by(page_bytes as usize));
    Ok(entries
        .filter(|(e, _)| e.is_private_anonymous())
        .map(|(e, address)| PageAddress { address, exclusive: e.is_exclusive() })
        .collect())
}

/// Copies the pages at `addresses` until `deadline` and skips those that are gone by now. Waits for a page that was swapped out in between.
///
/// # Errors
/// The process's memory cannot be opened.
fn copy(
    root: &Root,
    pid: u32,
    addresses: &[PageAddress],
    deadline: Instant,
    sample: &mut Sample,
) -> Result<()> {
    if addresses.is_empty() {
        return Ok(());
    }
    let path = root.path(format!("proc/{pid}/mem"));
    let memory = File::open(&path).map_err(|e| Error::io("open", &path, e))?;
    for address in addresses {
        if Instant::now() >= deadline {
            break;
        }
        let slot = sample.next_page();
        if memory.read_exact_at(slot, address.address).is_ok() {
            let content = decode::content(slot);
            sample.count(content, address.exclusive);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::measurements::PageCounts;
    use std::fs;
    use std::io::{Seek, SeekFrom, Write};
    use std::path::Path;

    /// A process in a fake root, with one page of memory for each of `entries`.
    struct Fake<'a> {
        root: &'a Path,
        pid: u32,
        name: &'a str,
        locked_kib: u64,
    }

    const START: u64 = 16 << 20;
    const PRESENT: u64 = 1 << 63 | 1 << 56;

    impl Fake<'_> {
        fn write(&self, file: &str, offset: u64, bytes: &[u8]) {
            let path = self.root.join(format!("proc/{}/{file}", self.pid));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mut f = fs::OpenOptions::new().create(true).truncate(true).write(true).open(path).unwrap();
            f.seek(SeekFrom::Start(offset)).unwrap();
            f.write_all(bytes).unwrap();
        }

        fn with(&self, entries: &[u64], page: fn(usize) -> Vec<u8>) {
            let size = rustix::param::page_size();
            let (kib, end) = (entries.len() * size / 1024, START + (entries.len() * size) as u64);
            self.write(
                "status",
                0,
                format!("Name:\t{}\nVmLck:\t{} kB\nRssAnon:\t{kib} kB\n", self.name, self.locked_kib)
                    .as_bytes(),
            );
            let map = format!("{START:x}-{end:x} rw-p 00000000 00:00 0 [heap]\n");
            self.write("maps", 0, map.as_bytes());
            self.write("smaps", 0, format!("{map}VmFlags: rd wr lo\n").as_bytes());
            let raw: Vec<u8> = entries.iter().flat_map(|e| e.to_ne_bytes()).collect();
            self.write("pagemap", START / size as u64 * 8, &raw);
            let memory: Vec<u8> = (0..entries.len()).flat_map(page).collect();
            self.write("mem", START, &memory);
        }
    }

    fn mixed(n: usize) -> Vec<u8> {
        (0..rustix::param::page_size()).map(|i| (n + i / 3) as u8).collect()
    }

    fn zeros(_: usize) -> Vec<u8> {
        vec![0; rustix::param::page_size()]
    }

    fn take(root: &Path, requested: usize) -> Sample {
        sample(&Root::at(root), None, requested, Duration::from_secs(5), &mut Random::new(3)).unwrap()
    }

    /// The chunks of these ranges, in the order of their addresses, and whether they came in another one.
    fn chunks_of(ranges: &[Range<u64>]) -> (Vec<Range<u64>>, bool) {
        let chunks = chunks(ranges, 4096, &mut Random::new(3));
        let mut sorted = chunks.clone();
        sorted.sort_by_key(|chunk| chunk.start);
        let is_shuffled = sorted != chunks;
        (sorted, is_shuffled)
    }

    #[test]
    fn all_chunks_of_a_few_ranges_come_in_random_order() {
        const MIB: u64 = 1 << 20;
        let ranges = [3 * MIB..6 * MIB, 8 * MIB..10 * MIB, 11 * MIB..11 * MIB + 4096];
        let (chunks, _) = chunks_of(&ranges);
        let expected = [3 * MIB..5 * MIB, 5 * MIB..6 * MIB, 8 * MIB..10 * MIB, 11 * MIB..11 * MIB + 4096];
        assert_eq!(chunks, expected);
        assert!(chunks_of(&[0..64 * MIB, 65 * MIB..66 * MIB]).1, "33 chunks in their own order");
        assert_eq!(chunks_of(&[]).0, []);
    }

    /// A user's 65,530 mappings without memory.
    #[test]
    fn a_process_that_maps_the_whole_address_space_costs_as_much_as_others() {
        const GIB: u64 = 1 << 30;
        let ranges: Vec<_> = (0..65_530).map(|n| n * 2 * GIB..(n * 2 + 2) * GIB - 4096).collect();
        let (chunks, is_shuffled) = chunks_of(&ranges);
        assert_eq!((chunks.len(), is_shuffled), (CHUNKS, true));
        assert!(chunks.windows(2).all(|two| two[0].end <= two[1].start), "each once");
        let is_within = |chunk: &Range<u64>| {
            let range = &ranges[(chunk.start / (2 * GIB)) as usize];
            range.start <= chunk.start && chunk.end <= range.end
        };
        assert!(chunks.iter().all(is_within));
        let upper = chunks.iter().filter(|chunk| chunk.start > 65_530 * GIB).count();
        assert!((CHUNKS * 2 / 5..CHUNKS * 3 / 5).contains(&upper), "{upper} of {CHUNKS} in the upper half");
    }

    #[test]
    fn takes_the_requested_pages_in_proportion() {
        let dir = tempfile::tempdir().unwrap();
        for (pid, pages) in [(10, 300), (11, 900)] {
            Fake { root: dir.path(), pid, name: "shop", locked_kib: 0 }.with(&vec![PRESENT; pages], mixed);
        }
        let s = take(dir.path(), 400);
        assert_eq!((s.counts.sampled, s.distinct(), s.counts.processes), (400, 400, 2));
        let all = take(dir.path(), 5000);
        assert_eq!((all.distinct(), all.is_cut), (1200, false));
    }

    /// On a slow CPU the pages of the first processes alone would decide: one of them may compress five times better than all others.
    #[test]
    fn when_the_time_is_over_the_pages_are_of_all_processes() {
        let dir = tempfile::tempdir().unwrap();
        for (pid, byte) in [(10, 1_u8), (11, 2)] {
            let fake = Fake { root: dir.path(), pid, name: "shop", locked_kib: 0 };
            let page = if byte == 1 { |n| marked(1, n) } else { |n| marked(2, n) };
            fake.with(&[PRESENT; 800], page);
        }
        let sample = take(dir.path(), 1600);
        let of = |mark| (0..200).filter(|at| sample.page(*at)[0] == mark).count();
        assert_eq!((of(1), of(2)), (100, 100), "the first eighth");
    }

    fn marked(mark: u8, n: usize) -> Vec<u8> {
        let mut page = mixed(n);
        page[0] = mark;
        page
    }

    #[test]
    fn only_the_processes_of_the_scope() {
        let dir = tempfile::tempdir().unwrap();
        for pid in [10, 11, 12] {
            Fake { root: dir.path(), pid, name: "shop", locked_kib: 0 }.with(&[PRESENT; 9], mixed);
        }
        let mut random = Random::new(3);
        let s =
            sample(&Root::at(dir.path()), Some(&[11, 99]), 100, Duration::from_secs(5), &mut random).unwrap();
        assert_eq!((s.counts.sampled, s.counts.processes), (9, 1));
    }

    #[test]
    fn leaves_out_swapped_shared_and_absent_pages() {
        let dir = tempfile::tempdir().unwrap();
        let entries = [PRESENT, 1 << 62, 1 << 63 | 1 << 61, 0, PRESENT];
        Fake { root: dir.path(), pid: 10, name: "shop", locked_kib: 0 }.with(&entries, mixed);
        assert_eq!(take(dir.path(), 100).distinct(), 2);
    }

    #[test]
    fn leaves_out_its_own_and_locked_memory_and_kernel_threads() {
        let dir = tempfile::tempdir().unwrap();
        Fake { root: dir.path(), pid: 10, name: "eke-agent", locked_kib: 0 }.with(&[PRESENT; 9], mixed);
        Fake { root: dir.path(), pid: 11, name: "gpg", locked_kib: 64 }.with(&[PRESENT; 9], mixed);
        Fake { root: dir.path(), pid: 12, name: "kswapd0", locked_kib: 0 }.write(
            "status",
            0,
            b"Name:\tkswapd0\n",
        );
        assert_eq!(take(dir.path(), 100).counts, PageCounts::default());
    }

    #[test]
    fn zero_pages_count_apart_and_the_kernels_own_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        Fake { root: dir.path(), pid: 10, name: "shop", locked_kib: 0 }
            .with(&[PRESENT, PRESENT, 1 << 63], zeros);
        Fake { root: dir.path(), pid: 11, name: "shop", locked_kib: 0 }
            .with(&[PRESENT; 2], |_| vec![0xa5; rustix::param::page_size()]);
        let s = take(dir.path(), 100);
        assert_eq!((s.counts.sampled, s.counts.zero, s.counts.same_filled, s.len()), (4, 2, 2, 0));
        assert_eq!(s.stored_share(), 0.0);
    }

    #[test]
    fn a_program_stands_in_for_processes_that_may_not_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let stand_in = |requested| stand_in(&Root::at(dir.path()), requested, 7).unwrap();
        assert!(stand_in(100).is_none());
        let program = Fake { root: dir.path(), pid: 1, name: "", locked_kib: 0 };
        program.write("exe", 0, &[&mixed(1)[..], &zeros(0), &mixed(2), b"an incomplete page"].concat());
        fs::rename(dir.path().join("proc/1"), dir.path().join("proc/self")).unwrap();
        let counts = PageCounts { sampled: 3, zero: 1, unreadable_processes: 7, ..PageCounts::default() };
        assert_eq!((stand_in(100).unwrap().counts, stand_in(100).unwrap().distinct()), (counts, 2));
        assert_eq!(stand_in(1).unwrap().page(0), mixed(1));
    }

    #[test]
    fn a_process_that_is_gone_by_now_is_skipped() {
        let dir = tempfile::tempdir().unwrap();
        Fake { root: dir.path(), pid: 10, name: "shop", locked_kib: 0 }.with(&[PRESENT; 9], mixed);
        fs::remove_file(dir.path().join("proc/10/mem")).unwrap();
        assert_eq!(take(dir.path(), 100).counts, PageCounts::default());
    }
}

//! Cuts what candidates would read into units with the same users.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use super::{Candidate, Environment, Limits, Resident};
use crate::cost::DiskCost;
use crate::file_set::{Kind, Stamp, Touched};
use crate::pages::{PAGE_BYTES, Pages, Span};

/// A read within this many pages after the previous one comes with it, by the kernel's read-ahead of 128 KiB (the default of `read_ahead_kb`).
const READ_AHEAD_PAGES: u64 = 32;
/// The longest hole that is read, however slow requests are.
const LONGEST_HOLE_PAGES: u64 = 256;

/// A part of a file that the same candidates use.
#[derive(Debug)]
pub(super) struct Unit<'a> {
    /// The file.
    pub file: &'a Touched,
    /// The file's index in the order of kinds and names.
    pub number: usize,
    /// Pages that are used and not in memory.
    pub pages: Pages,
    /// The file's earliest position in the first-use order of any set.
    pub position: usize,
    /// The probability that any candidate uses it.
    pub probability: f64,
    /// Expected seconds saved, by requests and by bytes.
    pub saved: Seconds,
    /// The part of each candidate that uses it.
    pub shares: Vec<Share>,
}

/// Disk time in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Seconds {
    /// For requests.
    pub requests: f64,
    /// For bytes.
    pub bytes: f64,
}

impl Seconds {
    pub(super) fn sum(self) -> f64 {
        self.requests + self.bytes
    }
}

/// A candidate's part in a unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    /// The candidate's index.
    pub candidate: usize,
    /// Bytes that it uses.
    pub bytes: u64,
    /// Seconds that reading them takes it from a cold disk.
    pub cold_s: f64,
}

/// Totals over a candidate's set.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CandidateTotal {
    /// Files that may be read.
    pub readable: usize,
    /// Those of them that enough launches use.
    pub usual: usize,
    /// Seconds to read the usual ones from a cold disk.
    pub cold_s: f64,
    /// Seconds that eke's CPU time takes from the launch.
    pub cpu_s: f64,
    /// Whether the candidate is left out because it would save too little.
    pub is_small_gain: bool,
}

impl CandidateTotal {
    /// Whether eke's reads would cost the launch more than they save it.
    pub fn costs_more(&self) -> bool {
        self.cpu_s > self.cold_s
    }
}

/// All units, and the totals per candidate.
#[derive(Debug)]
pub(super) struct Demand<'a> {
    pub units: Vec<Unit<'a>>,
    pub totals: Vec<CandidateTotal>,
    /// For each file, by its number: which holes may be read.
    pub holes: Vec<Holes>,
}

/// The holes of a file.
#[derive(Debug)]
pub(super) struct Holes {
    /// Reading up to this many pages is faster than another request.
    pub longest: u64,
    /// Pages in memory, which need no read.
    pub resident: Pages,
}

/// One candidate's use of a file.
struct FileUse<'a> {
    candidate: usize,
    probability: f64,
    file: &'a Touched,
    position: usize,
}

/// Identifies a file. Comparing names as bytes is fast; paths would be compared part by part.
type Key<'a> = (Kind, &'a OsStr, Stamp);

pub(super) fn units<'a>(
    candidates: &[Candidate<'a>],
    environment: &dyn Environment,
    limits: &Limits,
) -> Demand<'a> {
    let mut costs: BTreeMap<Key<'a>, Option<DiskCost>> = BTreeMap::new();
    let mut by_file: BTreeMap<Key<'a>, Vec<FileUse<'a>>> = BTreeMap::new();
    let mut totals = Vec::with_capacity(candidates.len());
    for (at, candidate) in candidates.iter().enumerate() {
        let total = total(candidate, limits, |file| {
            *costs.entry(key(file)).or_insert_with(|| cost(file, environment))
        });
        if !total.is_small_gain && !total.costs_more() {
            for user in users(at, candidate) {
                by_file.entry(key(user.file)).or_default().push(user);
            }
        }
        totals.push(total);
    }
    let mut demand = Demand { units: Vec::new(), totals, holes: Vec::new() };
    for (key, users) in by_file {
        let (Some(Some(cost)), Some(first)) = (costs.get(&key), users.first()) else { continue };
        let resident = match environment.resident(first.file) {
            Resident::All => continue,
            Resident::Unknown => Pages::default(),
            Resident::Pages(pages) => pages,
        };
        let of_file = of_file(first.file, &users, *cost, &resident);
        let number = demand.holes.len();
        demand.units.extend(of_file.into_iter().map(|unit| Unit { number, ..unit }));
        demand.holes.push(Holes { longest: longest_hole(*cost), resident });
    }
    demand
}

fn key(file: &Touched) -> Key<'_> {
    (file.kind, file.path.as_os_str(), file.stamp)
}

fn cost(file: &Touched, environment: &dyn Environment) -> Option<DiskCost> {
    let sound = |cost: &DiskCost| {
        [cost.request_s, cost.near_request_s, cost.byte_s].iter().all(|s| s.is_finite() && *s >= 0.0)
    };
    if environment.is_pinned(&file.path) { None } else { environment.cost(file).filter(sound) }
}

fn total<'a>(
    candidate: &Candidate<'a>,
    limits: &Limits,
    mut cost: impl FnMut(&'a Touched) -> Option<DiskCost>,
) -> CandidateTotal {
    let mut total = CandidateTotal::default();
    for file in &candidate.set.files {
        let Some(cost) = cost(file) else { continue };
        total.readable += 1;
        // What is not read decides nothing: at exec, a film among the few files of its player.
        if share(file.weight) >= limits.least_probability {
            total.usual += 1;
            let bytes = bytes(file.kind, &file.pages);
            total.cold_s += share(file.weight) * cost.seconds(requests(file), bytes);
            total.cpu_s += share(file.weight) * limits.cpu_page_s * (bytes / PAGE_BYTES) as f64;
        }
    }
    let of_launch = candidate.took.map_or(0.0, |took| limits.least_saved_share * took.as_secs_f64());
    let is_small_share = candidate.took.is_none() || total.cold_s < of_launch;
    total.is_small_gain = total.usual > 0 && total.cold_s < limits.least_saved_s && is_small_share;
    total
}

fn users<'a>(at: usize, candidate: &Candidate<'a>) -> impl Iterator<Item = FileUse<'a>> + use<'a> {
    let probability =
        if candidate.probability.is_nan() { 0.0 } else { candidate.probability.clamp(0.0, 1.0) };
    candidate.set.files.iter().enumerate().map(move |(position, file)| FileUse {
        candidate: at,
        probability: probability * share(file.weight),
        file,
        position,
    })
}

fn share(weight: f32) -> f64 {
    sound(f64::from(weight))
}

/// Clamps to a probability; NaN is 0.
pub(super) fn sound(probability: f64) -> f64 {
    if probability.is_nan() { 0.0 } else { probability.clamp(0.0, 1.0) }
}

/// Searching a directory reads at least one block.
fn bytes(kind: Kind, pages: &Pages) -> u64 {
    if kind == Kind::Directory { PAGE_BYTES } else { pages.bytes() }
}

/// The first pages of the requests that a sequential reader of these pages makes.
fn starts(pages: &Pages) -> impl Iterator<Item = u64> + '_ {
    let spans = pages.spans();
    let is_start = move |at: usize| at == 0 || spans[at].first - spans[at - 1].end > READ_AHEAD_PAGES;
    spans.iter().enumerate().filter(move |(at, _)| is_start(*at)).map(|(_, span)| span.first)
}

/// Number of such requests.
fn requests(file: &Touched) -> u64 {
    if file.kind == Kind::Directory { 1 } else { starts(&file.pages).count() as u64 }
}

/// 1 - ∏(1 - p).
fn any(probabilities: impl Iterator<Item = f64>) -> f64 {
    1.0 - probabilities.map(|p| 1.0 - p).product::<f64>()
}

/// Pieces with the same users that come with one request are one unit.
fn of_file<'a>(file: &'a Touched, users: &[FileUse<'a>], cost: DiskCost, resident: &Pages) -> Vec<Unit<'a>> {
    if file.kind == Kind::Directory {
        return vec![unit(file, users, &[Piece::directory(users.len())], cost)];
    }
    let mut by_users: BTreeMap<Vec<usize>, Vec<Piece>> = BTreeMap::new();
    for piece in pieces(users, resident) {
        by_users.entry(piece.users.clone()).or_default().push(piece);
    }
    let is_one = |a: &Piece, b: &Piece| b.span.first - a.span.end <= READ_AHEAD_PAGES;
    let clusters = by_users.values().flat_map(|pieces| pieces.chunk_by(is_one));
    clusters.map(|cluster| unit(file, users, cluster, cost)).collect()
}

/// Pages that take less time than another request.
fn longest_hole(cost: DiskCost) -> u64 {
    ((cost.hole_bytes() / PAGE_BYTES as f64) as u64).min(LONGEST_HOLE_PAGES)
}

/// Pages that the same candidates use.
#[derive(Debug)]
struct Piece {
    span: Span,
    /// Sorted indexes of the file's users.
    users: Vec<usize>,
    /// For each page at which a request starts: the users that start one there.
    starts: Vec<Vec<usize>>,
}

impl Piece {
    fn directory(users: usize) -> Self {
        let all: Vec<usize> = (0..users).collect();
        Self { span: Span { first: 0, end: 1 }, users: all.clone(), starts: vec![all] }
    }
}

/// Missing pages that are in use, cut where any user begins or ends.
fn pieces(users: &[FileUse<'_>], resident: &Pages) -> Vec<Piece> {
    let missing: Vec<Pages> = users.iter().map(|user| user.file.pages.without(resident)).collect();
    let mut cuts: Vec<u64> = missing.iter().flat_map(Pages::spans).flat_map(|s| [s.first, s.end]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut request_starts: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (at, missing) in missing.iter().enumerate() {
        starts(missing).for_each(|page| request_starts.entry(page).or_default().push(at));
    }
    let piece = |pair: &[u64]| {
        let span = Span::new(pair[0], pair[1])?;
        let users: Vec<usize> = (0..users.len()).filter(|at| missing[*at].has(span.first)).collect();
        let starts = request_starts.range(span.first..span.end).map(|(_, users)| users.clone()).collect();
        (!users.is_empty()).then_some(Piece { span, users, starts })
    };
    cuts.windows(2).filter_map(piece).collect()
}

/// One unit from adjacent pieces of the same users.
fn unit<'a>(file: &'a Touched, users: &[FileUse<'a>], pieces: &[Piece], cost: DiskCost) -> Unit<'a> {
    let of = pieces.first().map_or(&[][..], |piece| &piece.users);
    let used: u64 = pieces.iter().map(|piece| piece.span.bytes()).sum();
    let p = |at: &usize| users[*at].probability;
    let probability = any(of.iter().map(p));
    let starts = || pieces.iter().flat_map(|piece| &piece.starts);
    let saved = Seconds {
        requests: cost.request_s * starts().map(|users| any(users.iter().map(p))).sum::<f64>(),
        bytes: cost.byte_s * used as f64 * probability,
    };
    let alone = |at: &usize| {
        let requests = starts().filter(|users| users.contains(at)).count() as u64;
        Share { candidate: users[*at].candidate, bytes: used, cold_s: cost.seconds(requests, used) }
    };
    let used_pages = pieces.iter().map(|piece| piece.span).filter(|_| file.kind != Kind::Directory);
    Unit {
        file,
        number: 0,
        pages: used_pages.collect(),
        position: of.iter().map(|at| users[*at].position).min().unwrap_or(0),
        probability,
        saved,
        shares: of.iter().map(alone).collect(),
    }
}

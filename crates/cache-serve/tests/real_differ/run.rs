//! Runs cases: how many, from which seeds, for how long.
//!
//! - `EKE_DIFFER_SECONDS=N`: each variant for so long, with new seeds; differences are printed and do not end it
//! - `EKE_SEED=N`: instead of the random seed
//! - `EKE_CASES=N`: cases of each seed
//!
//! A failing case is shrunk and printed as a line for `regressions.jsonl`, whose cases are run each time.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use super::case::{Case, Count, Environment, run as run_case};
use super::choose::{self, BackingOps};
use super::user::{USERS, User};
use crate::common::mount::Mount;

const RECORDED: &str = include_str!("regressions.jsonl");
/// The most steps of a case.
const STEPS: usize = 90;

/// A mount under test.
pub struct Variant<'a> {
    /// A directory on the same file system as the backing directory.
    pub plain: &'a Path,
    pub name: &'a str,
    pub mount: &'a Mount,
    pub backing: BackingOps,
    /// May files use passthrough?
    pub passthrough: bool,
    /// Does each change of a file give it another time (multigrain timestamps)?
    pub fine_times: bool,
    /// Cases of each of the two seeds.
    pub cases: u32,
}

impl<'a> Variant<'a> {
    /// Without passthrough, with fine times.
    pub fn new(name: &'a str, mount: &'a Mount, plain: &'a Path, backing: BackingOps) -> Self {
        Self { plain, name, mount, backing, passthrough: false, fine_times: true, cases: 16 }
    }
}

/// How often each difference was found, by signature.
type Found = RefCell<BTreeMap<String, u32>>;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|n| n.parse().ok())
}

/// Runs the recorded cases, then new ones.
pub fn run(variant: &Variant<'_>) {
    let users: Vec<User> = (0..USERS.len()).map(User::start).collect();
    let count = Count::default();
    let (mounted, backing) = (variant.mount.place(), variant.mount.backing());
    let environment = Environment {
        passthrough: variant.passthrough,
        fine_times: variant.fine_times,
        deaths: variant.backing == BackingOps::ContentWithDeaths,
        count: &count,
        users: &users,
        mounted,
        backing,
        plain: variant.plain,
    };
    let found = Found::default();
    replay(variant, &environment, &found);
    try_seeds(variant, &environment, &found);
    eprintln!("{}: {count:?}", variant.name);
    let found = found.into_inner();
    let log = variant.mount.server.log();
    assert!(found.is_empty(), "{}: {found:#?}\neke-cache logged: {log}", variant.name);
}

/// The fixed seed, a random one, and further ones as long as `EKE_DIFFER_SECONDS` allows.
fn try_seeds(variant: &Variant<'_>, environment: &Environment<'_>, found: &Found) {
    let random = number("EKE_SEED").unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64 & 0xffff_ffff
    });
    eprintln!("{}: seeds 1 and {random} (EKE_SEED)", variant.name);
    let cases = number("EKE_CASES").map_or(variant.cases, |n| n as u32);
    for seed in [1, random] {
        try_seed(variant, environment, seed, cases, found);
    }
    if let Some(seconds) = number("EKE_DIFFER_SECONDS") {
        let end = Instant::now() + Duration::from_secs(seconds);
        let mut seed = random;
        while Instant::now() < end {
            seed = seed.wrapping_add(1);
            try_seed(variant, environment, seed, 50, found);
        }
    }
}

fn replay(variant: &Variant<'_>, environment: &Environment<'_>, found: &Found) {
    for line in RECORDED.lines().filter(|l| !l.trim().is_empty() && !l.starts_with('#')) {
        let case: Case = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        if !choose::is_for(variant.backing, &case) {
            continue;
        }
        if let Err(difference) = run_case(environment, &case) {
            eprintln!("{}: a recorded case fails: {difference}\n{line}", variant.name);
            *found.borrow_mut().entry(difference.signature).or_default() += 1;
        }
    }
}

/// A runner whose cases depend on the variant's name and the seed alone.
fn runner(name: &str, seed: u64, cases: u32) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    bytes[8..16].copy_from_slice(&hasher.finish().to_le_bytes());
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 2000,
        max_shrink_time: 60_000,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

fn try_seed(variant: &Variant<'_>, environment: &Environment<'_>, seed: u64, cases: u32, found: &Found) {
    let mut runner = runner(variant.name, seed, cases);
    // Only the difference that was found first is shrunk, not another one that appears meanwhile.
    let searched = RefCell::new(None::<String>);
    let ran = runner.run(&choose::case(variant.backing, STEPS), |case| {
        let Err(difference) = run_case(environment, &case) else { return Ok(()) };
        let mut searched = searched.borrow_mut();
        let is_it = searched.as_ref().is_none_or(|signature| *signature == difference.signature);
        if let Some(known) = found.borrow_mut().get_mut(&difference.signature) {
            *known += 1;
            return Ok(());
        }
        if !is_it {
            return Ok(());
        }
        *searched = Some(difference.signature.clone());
        Err(TestCaseError::fail(difference.description))
    });
    if let Err(TestError::Fail(why, case)) = ran {
        let signature = searched.into_inner().unwrap_or_default();
        report(variant, seed, &signature, &why.to_string(), &case, environment);
        found.borrow_mut().insert(signature, 1);
        // The remaining time is for other differences.
        if number("EKE_DIFFER_SECONDS").is_some() {
            try_seed(variant, environment, seed.wrapping_mul(31).wrapping_add(7), cases, found);
        }
    } else if let Err(e) = ran {
        panic!("{}: {e}", variant.name);
    }
}

fn report(
    variant: &Variant<'_>,
    seed: u64,
    signature: &str,
    why: &str,
    case: &Case,
    environment: &Environment<'_>,
) {
    let failures = (0..5).filter(|_| run_case(environment, case).is_err()).count();
    let steps: Vec<_> = case
        .steps
        .iter()
        .map(|s| format!("  {} {:?} {:?}", USERS[usize::from(s.by)].uid, s.via, s.op))
        .collect();
    let line = serde_json::to_string(case).unwrap();
    let text = format!(
        "{}, seed {seed}: {signature}\n{}\n  => {why}\n  {failures} of 5 repetitions fail, compare_each {}, walk_every {}\n{line}\n",
        variant.name,
        steps.join("\n"),
        case.compare_each,
        case.walk_every
    );
    eprintln!("{text}");
    if let Some(file) = std::env::var_os("EKE_DIFFER_FOUND").map(PathBuf::from) {
        use std::io::Write as _;
        let mut file = std::fs::File::options().append(true).create(true).open(file).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }
}

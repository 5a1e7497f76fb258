//! A dictionary whose data has changed, on the real kernel: the new one is measured, gets a device, and the older device goes. Needs root and a zram with
//! parameters (Linux 6.12); otherwise it prints why it is skipped.

#![expect(clippy::unwrap_used, reason = "what a test stands on must be there")]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use eke_apply::session::Session;
use eke_apply::swapoff::Interrupt;
use eke_apply::zram::kept_dictionary;
use eke_apply::{journal, state};
use eke_linux::{Root, read, zram};
use eke_model::applied::Applied;
use eke_model::config::Settings;
use eke_model::sample::SwapArea;
use eke_model::step::{PlannedStep, Reason, Step, ZramSpec};
use eke_model::units::Bytes;
use eke_swap::decide::REMEDY;
use eke_swap::live::act;
use eke_swap::measure::dictionaries::dictionaries;
use eke_swap::measure::{Dictionary, Limits, Scope, Unjournaled};
use eke_swap::probe::probe;
use eke_swap::retrain::{self, RECORD, Record};
use eke_testkit::program::{KilledOnDrop, output};
use eke_testkit::real::{lock_machine, no_program, skip};

/// Set in the program whose pages are sampled.
const PROGRAM: &str = "EKE_TEST_WORDS";
const PROGRAM_MIB: usize = 32;
/// Set in the helper: the algorithm that takes a dictionary.
const ALGORITHM: &str = "EKE_TEST_RETRAIN_WITH";
/// Words of so many bytes: a page has few of them twice, and a dictionary has all.
const WORD: usize = 128;
const WORDS: u64 = 256;

struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// Pages of words in another order each.
fn pages(count: usize) -> Vec<u8> {
    let words: Vec<Vec<u8>> = (0..WORDS).map(|word| Noise(word + 1).bytes(WORD)).collect();
    let mut order = Noise(7);
    (0..count * 4096 / WORD).flat_map(|_| words[(order.next() % WORDS) as usize].clone()).collect()
}

/// Not a test: the program.
#[test]
fn program() {
    if std::env::var_os(PROGRAM).is_none() {
        return;
    }
    let pages = pages(PROGRAM_MIB << 8);
    println!("program is ready");
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().read_line(&mut String::new());
    std::hint::black_box(&pages);
}

fn start_program() -> (KilledOnDrop, Scope) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "program", "--nocapture"]).env(PROGRAM, "1");
    let mut program = KilledOnDrop(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(program.0.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("program is ready")));
    let scope = Scope { processes: Some(vec![program.0.id()]), ..Scope::default() };
    (program, scope)
}

/// zstd if the kernel has it, else lz4, which also takes a dictionary; the reason if it takes none.
fn algorithm(root: &Root) -> Result<String, String> {
    let facts = probe(root).unwrap();
    if !facts.is_root || !facts.zram.control {
        return Err("no root, or no /sys/class/zram-control".into());
    }
    let features = facts.zram.features.unwrap_or_default();
    let has = |name: &&str| features.algorithms.iter().any(|offered| offered == name);
    let name = ["zstd", "lz4"].into_iter().find(has).filter(|_| features.algorithm_params);
    name.map(str::to_owned).ok_or_else(|| "zram takes no dictionary (Linux 6.12)".into())
}

fn spec(algorithm: &str, dictionary: &Dictionary, swap_priority: Option<i16>) -> ZramSpec {
    ZramSpec {
        dictionary: Some(dictionary.path()),
        swap_priority,
        ..ZramSpec::new(algorithm, Bytes::mib(32))
    }
}

#[test]
fn a_dictionary_of_the_pages_of_now_compresses_them_better_than_another_one() {
    let root = Root::host();
    let algorithm = match algorithm(&root) {
        Ok(name) => name,
        Err(why) => return skip("a_dictionary_of_the_pages_of_now_compresses_them_better", &why),
    };
    let _lock = lock_machine();
    let before = zram::devices(&root).unwrap();
    let (_program, scope) = start_program();
    let old = Dictionary::of(&Noise(99).bytes(64 << 10)).unwrap();
    let like = spec(&algorithm, &old, Some(100));
    let facts = probe(&root).unwrap();
    let limits = (&Limits::default(), &scope);
    let two = dictionaries(&root, &facts, limits, (&like, &old), &mut Unjournaled::new(&root));
    let two = two.unwrap().unwrap();
    assert!(two.new.ratio > 1.2 * two.old.ratio, "{:?} beside {:?}", two.new, two.old);
    assert!(two.new.pages >= 1_000 && two.old.pages == two.new.pages, "the same pages");
    assert_eq!(zram::devices(&root).unwrap(), before);
}

/// eke's swap and records of this test, removed at the end.
struct Up;

impl Up {
    fn with(algorithm: &str) -> Self {
        let root = Root::host();
        assert!(!root.exists(state::APPLIED), "eke is up on this machine");
        let up = Self;
        let old = Dictionary::of(&Noise(99).bytes(64 << 10)).unwrap();
        let step = Step::AddZram(spec(algorithm, &old, Some(100)));
        let planned = PlannedStep { step, reason: Reason::new("a test") };
        Session::open(&root, REMEDY).unwrap().apply(&planned).unwrap();
        state::save(&root, state::APPLIED, &Applied { unix_s: 1, ..Applied::default() }).unwrap();
        up
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let root = Root::host();
        let _ = Session::open(&root, REMEDY).and_then(|mut session| session.undo_own());
        let _ = state::forget(&root, state::APPLIED);
        let _ = state::forget(&root, RECORD);
    }
}

fn own_areas(root: &Root) -> Vec<(String, i32)> {
    let areas: Vec<SwapArea> = read::swaps(root).unwrap();
    let names: Vec<String> = areas.iter().filter_map(SwapArea::zram_name).map(str::to_owned).collect();
    let own = act::made_by_eke(root, &names);
    let priority = |name: &str| areas.iter().find(|area| area.zram_name() == Some(name)).unwrap().priority;
    own.iter().map(|(name, _)| (name.clone(), priority(name))).collect()
}

/// Not a test: the one below runs it where `/run` is in memory, as it is on most machines; only there a copy of a dictionary is kept.
#[test]
fn helper_replaces_a_dictionary() {
    let Some(algorithm) = std::env::var_os(ALGORITHM) else { return };
    let root = Root::host();
    let (_program, scope) = start_program();
    let up = Up::with(&algorithm.to_string_lossy());
    let settings = Settings::from_sources(&[]).unwrap().swap;
    retrain::begin(&root, 1, 2, None).unwrap();
    retrain::run(&root, &settings, &scope, 3).unwrap();
    let sentence = Record::load(&root).unwrap().sentence();
    assert!(sentence.contains("first: the dictionary is trained anew: pages of now compress"), "{sentence}");
    let own = own_areas(&root);
    let [(older, low), (newer, high)] = &own[..] else { panic!("{own:?}") };
    assert!(high > low, "{own:?}");
    let kept = |name: &str| root.read_bytes(kept_dictionary(name)).unwrap();
    assert_ne!(kept(older), kept(newer));
    let mode = root.path(kept_dictionary(newer)).metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(act::drain(&root, older, &Interrupt::default()).unwrap(), None);
    assert_eq!(own_areas(&root), [(newer.clone(), *high)]);
    assert!(!root.exists(kept_dictionary(older)));
    drop(up);
    assert!(journal::entries(&root).unwrap().is_empty());
}

#[test]
fn a_new_dictionary_gets_a_device_before_the_older_one_which_goes() {
    let test = "a_new_dictionary_gets_a_device_before_the_older_one_which_goes";
    let root = Root::host();
    let algorithm = match algorithm(&root) {
        Ok(name) => name,
        Err(why) => return skip(test, &why),
    };
    if let Some(why) = no_program(&["unshare", "mount", "sh"]) {
        return skip(test, &why);
    }
    let _lock = lock_machine();
    let before = (zram::devices(&root).unwrap(), read::swaps(&root).unwrap());
    let exe = std::env::current_exe().unwrap();
    let script =
        format!("mount -t tmpfs tmpfs /run && exec {} --exact helper_replaces_a_dictionary", exe.display());
    let mut command = Command::new("unshare");
    command.args(["-m", "--propagation", "private", "sh", "-c", &script]).env(ALGORITHM, algorithm);
    let output = output(&mut command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!((zram::devices(&root).unwrap(), read::swaps(&root).unwrap()), before);
}

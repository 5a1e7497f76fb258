//! The measurement on the real kernel, with a twin process whose pages are known. Needs root and zram; otherwise each
//! test prints why it is skipped.

#![expect(clippy::unwrap_used, reason = "what a test stands on must be there")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use eke_linux::{Error, Root, zram};
use eke_model::sample::SwapArea;
use eke_model::step::ZramSpec;
use eke_model::units::Bytes;
use eke_swap::facts::{Facts, ZramFeatures};
use eke_swap::measure::{Dictionary, Limits, Measured, NoScratch, Scope, Scratch, Unjournaled, measure};
use eke_swap::probe::probe;
use eke_testkit::program::KilledOnDrop;
use eke_testkit::real::{lock_machine, no_program, skip};

/// Set in the twin: its size in MiB.
const TWIN: &str = "EKE_TEST_TWIN_MIB";

/// A page that compresses about 3 to 1: a third of it is noise, the rest repeats it.
fn fill(page: &mut [u8], seed: &mut u64) {
    let (noise, rest) = page.split_at_mut(1300);
    for byte in noise.iter_mut() {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *byte = (*seed >> 56) as u8;
    }
    rest.chunks_mut(1300).for_each(|c| c.copy_from_slice(&noise[..c.len()]));
}

/// Not a test: the body of the twin.
#[test]
fn twin() {
    let Ok(mib) = std::env::var(TWIN) else { return };
    let mut pages = vec![0u8; mib.parse::<usize>().unwrap() << 20];
    let mut seed = 7;
    pages.chunks_mut(4096).for_each(|page| fill(page, &mut seed));
    println!("twin is ready");
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().read_line(&mut String::new());
    std::hint::black_box(&pages);
}

fn start_twin(mib: usize) -> KilledOnDrop {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "twin", "--nocapture"]).env(TWIN, mib.to_string());
    let mut twin = KilledOnDrop(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(twin.0.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("twin is ready")));
    twin
}

/// The machine and its facts, or `None` with a line about what is missing.
fn machine() -> Option<(Root, Facts)> {
    let root = Root::host();
    let facts = probe(&root).unwrap();
    let why = match (facts.is_root, facts.zram.control) {
        (false, _) => "not root",
        (_, false) => "no /sys/class/zram-control",
        _ => return Some((root, facts)),
    };
    eprintln!("skipped: {why}");
    None
}

fn measured(root: &Root, facts: &Facts, scratch: &mut dyn Scratch) -> Measured {
    measure(root, facts, &Limits::default(), &Scope::default(), scratch).unwrap()
}

#[test]
fn every_offered_algorithm_is_measured_and_no_device_is_left() {
    let _lock = lock_machine();
    let Some((root, facts)) = machine() else { return };
    let _twin = start_twin(256);
    let before = zram::devices(&root).unwrap();
    let m = measured(&root, &facts, &mut Unjournaled::new(&root));
    assert_eq!(zram::devices(&root).unwrap(), before);
    let most = Limits::default().sample.0 / rustix::param::page_size() as u64;
    assert!(!m.estimated && (1000..=most).contains(&m.pages.sampled), "{:?}", m.pages);
    let offered = m.zram_features.as_ref().unwrap().algorithms.clone();
    assert!(!offered.is_empty());
    for name in &offered {
        let row = m.algorithms.iter().find(|a| &a.name == name).unwrap();
        assert!(row.unusable.is_none() && !row.estimated && row.in_zram, "{row:?}");
        assert!(row.ratio > 1.0 && row.ratio_low <= row.ratio && row.ratio_low > 0.5, "{row:?}");
        assert!(row.pages > 0 && row.store_p50 <= row.store_p99 && row.load_p50 <= row.load_p99, "{row:?}");
        assert!(row.store_p50.0 > 0 && row.load_p50.0 > 0, "{row:?}");
    }
}

/// zswap alone offers an algorithm that has to be estimated, which takes as long as all others together.
#[test]
fn an_estimate_is_of_the_pages_that_zram_measured() {
    let _lock = lock_machine();
    let Some((root, mut facts)) = machine() else { return };
    let _twin = start_twin(256);
    let zswap = facts.zswap.get_or_insert_default();
    zswap.compressors = vec!["deflate".into()];
    facts.areas.push(SwapArea { path: "/dev/nosuch".into(), ..SwapArea::default() });
    facts.zram.features =
        Some(ZramFeatures { algorithms: vec!["lzo-rle".into()], ..ZramFeatures::default() });
    let m = measured(&root, &facts, &mut Unjournaled::new(&root));
    let rows: Vec<_> = m.algorithms.iter().map(|a| (a.name.as_str(), a.estimated, a.pages)).collect();
    let pages = m.algorithms[0].pages;
    assert_eq!(rows, [("lzo-rle", false, pages), ("deflate", true, pages)]);
    assert!(pages >= 500 && m.algorithms[1].ratio > m.algorithms[0].ratio, "{:#?}", m.algorithms);
}

/// A netbooted client's root: squashfs below an overlay, which has no direct I/O and no reads that do not wait. Drop unmounts it.
struct NetbootRoot(tempfile::TempDir);

impl NetbootRoot {
    #[expect(clippy::disallowed_methods, reason = "a file of the test's own")]
    fn new() -> Result<Self, String> {
        let here = tempfile::tempdir().unwrap();
        let at = |name: &str| here.path().join(name);
        let dirs = ["tree", "lower", "memory", "merged"].map(at);
        dirs.iter().for_each(|dir| std::fs::create_dir(dir).unwrap());
        let mut page = vec![0; 4096];
        let mut seed = 3;
        let bytes: Vec<u8> = (0..1024)
            .flat_map(|_| {
                fill(&mut page, &mut seed);
                page.clone()
            })
            .collect();
        std::fs::write(at("tree/program"), bytes).unwrap();
        let script = "mksquashfs tree image -quiet -no-progress && mount -t squashfs -o loop,ro image lower && \
                      mount -t tmpfs tmpfs memory && mkdir memory/upper memory/work && \
                      mount -t overlay -o lowerdir=lower,upperdir=memory/upper,workdir=memory/work overlay merged";
        let made = Command::new("sh").args(["-c", script]).current_dir(&here).output().unwrap();
        let root = Self(here);
        match made.status.success() {
            true => Ok(root),
            false => Err(String::from_utf8_lossy(&made.stderr).into_owned()),
        }
    }

    fn merged(&self) -> std::path::PathBuf {
        self.0.path().join("merged")
    }
}

impl Drop for NetbootRoot {
    fn drop(&mut self) {
        for name in ["merged", "memory", "lower"] {
            let _ = Command::new("umount").arg("-l").arg(self.0.path().join(name)).output();
        }
    }
}

#[test]
fn reads_of_a_netbooted_root_are_timed() {
    let _lock = lock_machine();
    let test = "reads_of_a_netbooted_root_are_timed";
    let Some((root, facts)) = machine() else { return };
    if let Some(why) = no_program(&["mksquashfs", "mount"]) {
        return skip(test, &why);
    }
    let netboot = match NetbootRoot::new() {
        Ok(made) => made,
        Err(why) => return skip(test, &format!("no squashfs below an overlay: {why}")),
    };
    let scope = Scope { files: Some(netboot.merged()), ..Scope::default() };
    let m = measure(&root, &facts, &Limits::default(), &scope, &mut NoScratch).unwrap();
    let read = m.file_read.unwrap_or_else(|| panic!("{:?}", m.unmeasured));
    assert!(!read.direct && read.reads > 0 && read.p50.0 > 0, "{read:?}");
}

/// btrfs accepts `O_DIRECT` for compressed data and reads it through the page cache: a machine that has run for a while answers in no time.
#[test]
#[expect(clippy::disallowed_methods, reason = "a file of the test's own")]
fn compressed_files_of_btrfs_are_read_from_the_disk() {
    let _lock = lock_machine();
    let test = "compressed_files_of_btrfs_are_read_from_the_disk";
    let Some((root, facts)) = machine() else { return };
    if let Some(why) = no_program(&["mkfs.btrfs", "mount"]) {
        return skip(test, &why);
    }
    let here = tempfile::tempdir().unwrap();
    let script = "truncate -s 128M image && mkfs.btrfs -q image && mkdir merged && \
                  mount -o loop,compress-force=zstd:1 image merged && mkdir merged/usr";
    let made = Command::new("sh").args(["-c", script]).current_dir(&here).output().unwrap();
    let mounted = NetbootRoot(here);
    if !made.status.success() {
        return skip(test, &format!("no btrfs: {}", String::from_utf8_lossy(&made.stderr)));
    }
    let mut bytes = vec![0; 8 << 20];
    let mut seed = 3;
    bytes.chunks_mut(4096).for_each(|page| fill(page, &mut seed));
    let dir = mounted.merged().join("usr");
    std::fs::write(dir.join("program"), bytes).unwrap();
    assert!(Command::new("sync").arg("-f").arg(&dir).status().unwrap().success());
    std::fs::read(dir.join("program")).unwrap();
    let scope = Scope { files: Some(dir), ..Scope::default() };
    let m = measure(&root, &facts, &Limits::default(), &scope, &mut NoScratch).unwrap();
    let read = m.file_read.unwrap_or_else(|| panic!("{:?}", m.unmeasured));
    assert!(!read.direct && read.reads > 0, "{read:?}");
}

#[test]
fn a_twin_of_known_pages_has_their_real_ratio() {
    let _lock = lock_machine();
    let Some((root, facts)) = machine() else { return };
    let others = Limits::default().sample.0 / 8;
    if facts.ram < Bytes(2 << 30) {
        eprintln!("skipped: less than 2 GiB of RAM for a twin that outweighs the other {others} bytes");
        return;
    }
    let _twin = start_twin(1024);
    let m = measured(&root, &facts, &mut Unjournaled::new(&root));
    let best = m.algorithms.iter().filter(|a| a.in_zram).map(|a| a.ratio).fold(0.0, f64::max);
    assert!((2.5..4.5).contains(&best), "{:#?}", m.algorithms);
}

/// Real devices with an injected failure.
struct Faulty {
    real: Unjournaled,
    adds: usize,
    fault: fn(usize, &mut ZramSpec) -> Option<Error>,
}

impl Scratch for Faulty {
    fn add(&mut self, spec: &ZramSpec) -> eke_linux::error::Result<String> {
        self.adds += 1;
        let mut spec = spec.clone();
        (self.fault)(self.adds, &mut spec).map_or_else(|| self.real.add(&spec), Err)
    }

    fn remove(&mut self, name: &str) -> eke_linux::error::Result<()> {
        self.real.remove(name)
    }
}

fn with_fault(fault: fn(usize, &mut ZramSpec) -> Option<Error>) -> Option<Measured> {
    let (root, facts) = machine()?;
    let before = zram::devices(&root).unwrap();
    let m = measured(&root, &facts, &mut Faulty { real: Unjournaled::new(&root), adds: 0, fault });
    assert_eq!(zram::devices(&root).unwrap(), before);
    Some(m)
}

#[test]
fn a_device_too_small_for_the_sample_is_removed_and_the_row_has_the_reason() {
    let _lock = lock_machine();
    let _twin = start_twin(32);
    let Some(m) = with_fault(|_, spec| {
        spec.disksize = Bytes(1 << 20);
        None
    }) else {
        return;
    };
    let why = m.algorithms[0].unusable.as_deref().unwrap();
    assert!(why.contains("write a page to /dev/zram"), "{why}");
}

#[test]
fn a_refusal_of_one_algorithm_leaves_the_others() {
    let _lock = lock_machine();
    let _twin = start_twin(32);
    let Some(m) = with_fault(|adds, _| (adds == 2).then(|| Error::Refused("no second device".into()))) else {
        return;
    };
    assert!(m.algorithms[0].unusable.is_none(), "{:?}", m.algorithms[0]);
    assert!(
        m.algorithms.iter().any(|a| a.unusable.as_deref() == Some("no second device")),
        "{:#?}",
        m.algorithms
    );
}

#[test]
fn a_panic_in_the_middle_leaves_no_device() {
    let _lock = lock_machine();
    let Some((root, facts)) = machine() else { return };
    let before = zram::devices(&root).unwrap();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let fault =
            |adds, _: &mut ZramSpec| if adds == 2 { std::panic::resume_unwind(Box::new(())) } else { None };
        measured(&root, &facts, &mut Faulty { real: Unjournaled::new(&root), adds: 0, fault })
    }));
    assert!(caught.is_err());
    assert_eq!(zram::devices(&root).unwrap(), before);
}

#[test]
fn the_row_of_a_missing_algorithm_lists_the_offered_ones() {
    let _lock = lock_machine();
    let Some(m) = with_fault(|_, spec| {
        spec.algorithm = "lz5".into();
        None
    }) else {
        return;
    };
    let why = m.algorithms[0].unusable.as_deref().unwrap();
    assert!(why.contains("this kernel offers: "), "{why}");
}

#[test]
fn without_root_everything_is_an_estimate_and_no_device_is_made() {
    let _lock = lock_machine();
    let root = Root::host();
    let facts = Facts { is_root: false, ..probe(&root).unwrap() };
    let _twin = start_twin(32);
    let m = measured(&root, &facts, &mut NoScratch);
    if m.pages.sampled == 0 {
        eprintln!("skipped: {:?}", m.unmeasured);
        return;
    }
    assert!(m.estimated && m.algorithms.iter().all(|a| a.estimated), "{:#?}", m.algorithms);
    assert!(m.unmeasured.iter().any(|u| u.what == "zram" && u.why.contains("root")), "{:?}", m.unmeasured);
}

#[test]
fn parameters_reach_the_device() {
    let _lock = lock_machine();
    let Some((root, facts)) = machine() else { return };
    let features = facts.zram.features.unwrap_or_default();
    if !features.algorithm_params {
        eprintln!("skipped: no algorithm_params (Linux 6.12)");
        return;
    }
    let before = zram::devices(&root).unwrap();
    let mut scratch = Unjournaled::new(&root);
    let spec = ZramSpec {
        params: Some("level=2".into()),
        ..ZramSpec::new(features.algorithms.last().unwrap().clone(), Bytes::mib(1))
    };
    let name = scratch.add(&spec).unwrap();
    scratch.remove(&name).unwrap();
    let nonsense = ZramSpec { params: Some("no such parameter".into()), ..spec };
    assert!(scratch.add(&nonsense).is_err());
    let dictionary = Dictionary::of(&[7; 8192]).unwrap();
    let level = Some("level=8".into());
    let with =
        ZramSpec { algorithm: "zstd".into(), params: level, dictionary: Some(dictionary.path()), ..nonsense };
    if features.algorithms.contains(&with.algorithm) {
        let name = scratch.add(&with).unwrap();
        scratch.remove(&name).unwrap();
        let nowhere = ZramSpec { dictionary: Some("/proc/self/fd/999".into()), ..with };
        assert!(scratch.add(&nowhere).is_err());
    }
    assert_eq!(zram::devices(&root).unwrap(), before);
}

#[test]
fn a_swap_area_is_read_by_direct_io() {
    let _lock = lock_machine();
    let root = Root::host();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    (0..8).for_each(|i| file.write_all(&[i; 1 << 20]).unwrap());
    file.as_file().sync_all().unwrap();
    let path = file.path().display().to_string();
    let area = eke_model::sample::SwapArea {
        path: path.clone(),
        kind: "file".into(),
        size: Bytes::mib(8),
        ..Default::default()
    };
    let facts = Facts { is_root: false, areas: vec![area], ..probe(&root).unwrap() };
    let m = measured(&root, &facts, &mut NoScratch);
    let Some(disk) = m.swap_disk else {
        eprintln!("skipped: {:?}", m.unmeasured);
        return;
    };
    assert_eq!((disk.what, disk.direct), (path, true));
    assert!(disk.reads > 0 && disk.p50 <= disk.p99, "{} reads", disk.reads);
}

#[test]
fn algorithms_are_found_without_a_device() {
    let _lock = lock_machine();
    let Some((root, mut facts)) = machine() else { return };
    let before = zram::devices(&root).unwrap();
    let known = facts.zram.features.take();
    let m = measured(&root, &facts, &mut Unjournaled::new(&root));
    assert_eq!(zram::devices(&root).unwrap(), before);
    let found = m.zram_features.unwrap();
    assert!(known.is_none_or(|k| k.algorithms == found.algorithms), "{found:?}");
}

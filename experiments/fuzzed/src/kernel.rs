//! Kernel files, journals and settings.

use std::path::{Path, PathBuf};

use eke_apply::journal;
use eke_apply::journal::record::{Phase, Record};
use eke_apply::{files, knob};
use eke_linux::{Root, cgroup, parse};
use eke_model::config::{Settings, Source};
use eke_model::step::Step;

use crate::input::{Input, text, two};
use crate::scratch;

/// Small files of `/proc` and `/sys`: any text for each.
pub fn kernel_texts(data: &[u8]) {
    let (text, key) = two(data);
    let memory = parse::meminfo::parse(&text);
    let _ = eke_metrics::reading::other_ram(&memory, memory.zswap_pool.unwrap_or_default());
    let _ = (parse::meminfo::field(&text, &key), parse::vmstat::parse(&text), parse::pressure::parse(&text));
    let _ = (parse::stat::machine(&text), parse::process_stat::parse(&text));
    let _ = (parse::zram::mm_stat(&key, &text), parse::zram::bd_count(&text), parse::zram::algorithms(&text));
    let _ = (
        parse::keyed::count(&text, &key),
        parse::keyed::value(&text, &key),
        parse::groups::limit(&text),
        parse::groups::own(&text, &key),
    );
    let _ = (parse::process_status::parse(&text), parse::process_statm::parse(&text));
    let _ = (parse::process_io::parse(&text), parse::arcstats::reclaimable(&text));
    let _ = (parse::disk_stat::parse(&text), parse::disk_stat::of_all(&text), parse::maps::parse(data));
    for area in parse::swaps::parse(&text) {
        let _ = area.zram_name();
    }
    assert!(parse::escape::unescape(data).len() <= data.len());
    for knob in knob::KNOBS {
        let _ = (knob.codec.decode(&text), knob.codec.decode_for(&text, &key), knob.codec.same(&text, &key));
    }
    if let Some(path) = knob::find(&text).and_then(|knob| knob.path_for(&key)) {
        assert!(!path.split('/').any(|part| part == ".."), "{path}");
    }
    if let Some(owner) = cgroup::name::owner(&text) {
        assert_eq!(cgroup::name::owner(&format!("x-{owner}")), Some(owner));
    }
}

/// The path without empty components.
fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}

/// Lists of mounts; paths may be any bytes.
pub fn mountinfo(data: &[u8]) {
    let mounts = parse::mountinfo::parse(data);
    for mount in &mounts {
        let found = parse::mountinfo::mount_of(&mount.place, &mounts);
        // The kernel writes no mount point with a double or trailing slash.
        let is_normalized =
            mount.place.starts_with("/") && mount.place.as_os_str() == plain(&mount.place).as_os_str();
        assert!(found.is_some() || !is_normalized, "{mount:?} has no mount");
        let _ = (parse::file_system::nature(&mount.kind), mount.has_option("rw"));
    }
    let ours = eke_cache_mounts::mounts::parse(data);
    assert!(ours.len() <= mounts.len());
    for mount in &ours {
        assert!(eke_cache_mounts::mounts::at(&ours, &mount.place).is_some());
        assert_eq!(mount.device.to_string().parse(), Ok(mount.device));
    }
    let places = eke_prefetchd::trace::mount_index::MountIndex::new(mounts.clone());
    for mount in &mounts {
        let _ = (places.device_at(&mount.place), places.answers(&mount.place));
    }
}

/// The journal of this boot, as `eke down` and `eke status` read it.
pub fn journal(data: &[u8]) {
    let dir = scratch::empty("journal");
    let (run, kernel) = (dir.join("run/eke"), dir.join("proc/sys/kernel/random"));
    std::fs::create_dir_all(&run).expect("a directory");
    std::fs::create_dir_all(&kernel).expect("a directory");
    std::fs::write(kernel.join("boot_id"), "b\n").expect("a file");
    let begun = Record { seq: 0, phase: Phase::Begun { boot_id: "b".into(), version: 1 } }.to_line();
    std::fs::write(run.join("journal.jsonl"), [begun.as_bytes(), b"\n", data].concat()).expect("a file");
    let root = Root::at(&dir);
    let entries = journal::entries(&root);
    for line in text(data).lines() {
        if let Ok(Some(record)) = Record::from_line(line) {
            assert_eq!(Record::from_line(&record.to_line()), Ok(Some(record)));
        }
    }
    let Ok(entries) = entries else { return };
    // A record after a partial one is read again, and changes in force still are.
    if let Ok(mut journal) = journal::Journal::try_open(&root) {
        let intent = journal::record::Intent {
            owner: "fuzz".into(),
            step: Step::set("vm.swappiness", 1),
            undo: journal::record::Undo::Nothing,
            reason: String::new(),
            made_by: None,
        };
        if journal.intend(intent).is_ok() {
            let after = journal.entries().expect("a journal that was read before");
            assert_eq!(after.len(), entries.len() + 1, "a record is lost");
            assert_eq!(after.last().map(|e| e.intent.owner.as_str()), Some("fuzz"));
        }
    }
}

/// The journal of files that outlive the boot.
pub fn files_journal(data: &[u8]) {
    if let Ok(records) = files::journal::parse(data) {
        let text: String =
            records.iter().map(|record| serde_json::to_string(record).unwrap_or_default() + "\n").collect();
        assert_eq!(files::journal::parse(text.as_bytes()), Ok(records));
    }
}

/// Several `eke.toml` files, overlaid.
pub fn config(data: &[u8]) {
    let mut input = Input(data);
    let first = input.piece();
    let (first, second) = (text(first), text(input.0));
    let name = |text| Source { name: "eke.toml", text };
    if let Err(e) = Settings::from_sources(&[name(&*first), name(&*second)]) {
        assert!(!e.to_string().contains('\n') && e.line >= 1);
    }
}

//! Learned files, traces, and records of the kernel.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use eke_linux::device;
use eke_prefetch_learned::share::form;
use eke_prefetch_model::predict::Eke;
use eke_prefetch_model::trace_text::{escaped, unescaped};
use eke_prefetch_model::{
    Event, FileSet, Kind, Launch, LaunchEnd, Program, ProgramId, Span, Stamp, Touched, UsedBy, UserEvent,
    learn,
};
use eke_prefetch_replay::trace::{parse, write};
use eke_prefetch_replay::{self as replay, Names, Settings, Trace, purdue as commands};
use eke_prefetch_store::{Access, Decision, NAME, ProgramStore, UnlearnedLaunch, spans};
use eke_prefetchd::trace::{mount_index, pagemap, proc_event, process, record};
use rusqlite::Connection;
use rusqlite::types::Value;

use crate::input::{Input, patched, text};
use crate::scratch;

const NOW_S: i64 = 1_800_000_000;
const SECOND: u64 = 1_000_000_000;

/// Events of BPF programs and of the process connector, `maps`, `pagemap`, and encoded pages.
pub fn prefetch_bytes(data: &[u8]) {
    match record::decode(data) {
        Some(record::Record::Exec(exec)) => {
            let args = process::split_args(exec.args, !exec.has_more_args);
            let exe = mount_index::inside(exec.names.unwrap_or_default());
            let _ = learn::GivenPaths::new(&args, Some(Path::new("/home")), None).has(&exe);
            let _ = learn::script::program(exe, &args, Some(Path::new("/home")));
        }
        Some(record::Record::File(file)) => {
            assert!(mount_index::inside(file.names.unwrap_or_default()).is_absolute());
        }
        _ => {}
    }
    let _ = proc_event::decode(data);
    for mapping in eke_linux::parse::maps::parse(data) {
        assert!(mapping.start <= mapping.end, "{mapping:?}");
    }
    let mut input = Input(data);
    let first = input.u64();
    for span in pagemap::present_pages(input.0, first >> 1) {
        assert!(span.first < span.end);
    }
    if let Some(pages) = spans::decode(data) {
        assert_eq!(spans::decode(&spans::encode(&pages)), Some(pages));
    }
    let _ = (eke_prefetch_disk::counters::parse(&text(data)), device::number(&text(data)));
    if let Ok(device) = device::Device::parse(&text(data), 16) {
        let _ = device.st_dev();
    }
}

/// Launches of another machine: writing what was read gives the same programs, and none has a path outside of packages.
pub fn prefetch_launches(data: &[u8]) {
    let text = text(data);
    let (signed, signature) = form::split(&text);
    assert_eq!(signed.len() + signature.map_or(0, str::len), text.len());
    let Ok(programs) = form::decode(signed) else { return };
    for program in &programs {
        let set = program.set();
        assert!(
            set.files.iter().all(|file| !file.path.starts_with("/home") && !file.path.starts_with("/etc"))
        );
        assert!(program.took().as_secs() <= 3600);
    }
    let again = form::encode(programs.clone()).expect("their paths are text");
    assert_eq!(form::decode(&again).expect("a written file is read"), programs);
}

/// A recorded trace: writing and reading it gives the same; a short one is replayed.
pub fn prefetch_trace(data: &[u8]) {
    let field = escaped(data);
    assert_eq!(unescaped(&field).as_deref(), Some(data));
    let _ = unescaped(&text(data));
    let Ok(trace) = parse(&text(data)) else { return };
    let again = parse(&write(&trace, Names::Plain)).expect("a written trace is parsed");
    assert_eq!((again.names, again.maps.bytes()), (trace.names.clone(), trace.maps.bytes()));
    assert_eq!(again.happened.len(), trace.happened.len());
    lived_through(&trace);
}

fn lived_through(trace: &Trace) {
    if trace.happened.len() <= 24 && trace.names.len() <= 12 {
        for row in replay::replay(trace, &Settings::of(trace)) {
            let is_share = row.unit == "%" && row.metric != "fetched per start";
            assert!(!is_share || (0.0..=100.000_001).contains(&row.value), "{row:?}");
        }
    }
}

/// Commands of one user in the format of the public trace.
pub fn purdue(data: &[u8]) {
    let trace = commands::import(&text(&data[..data.len().min(2000)]), 7);
    assert_eq!(parse(&write(&trace, Names::Plain)).map(|t| t.happened.len()), Ok(trace.happened.len()));
    lived_through(&trace);
}

fn happened(input: &mut Input<'_>) -> UserEvent {
    let program = ProgramId(u64::from(input.u8() % 8));
    let event = match input.u8() % 3 {
        0 => Event::Session,
        1 => Event::Start(program),
        _ => Event::Stop(program),
    };
    let at_s = f64::from_bits(input.u64());
    let at_s = if at_s.is_finite() { at_s.clamp(-1e15, 1e15) } else { NOW_S as f64 };
    UserEvent { at_s, user: u32::from(input.u8() % 4), event }
}

/// The saved state of a predictor: it is loaded, used, updated, and saved again.
pub fn predictor_state(data: &[u8]) {
    let mut input = Input(data);
    let count = usize::from(input.u8() % 16);
    let mut events = Input(input.bytes(count * 11));
    let mut eke = Eke::from_state(input.0).unwrap_or_default();
    for _ in 0..count {
        eke.observe(&happened(&mut events));
        for chance in eke.chances(NOW_S as f64, 60.0) {
            assert!((0.0..=1.0).contains(&chance.probability), "{chance:?}");
        }
    }
    let _ = (eke.weights(), eke.reliability().map(|(_, table)| table.error()).collect::<Vec<_>>());
    eke.forget(ProgramId(1));
    let kept = eke.to_state().expect("a state");
    Eke::from_state(&kept).expect("a saved state is loaded");
}

fn launch(n: u64) -> Launch {
    let pages = |from: u64| Span::new(from, from + 5).into_iter().collect();
    let stamp = Stamp { dev: 5, ino: 9 + n, size: 1 << 20, mtime_ns: 77 };
    let touched = |k: u64| Touched {
        path: format!("/usr/lib/lib{n}-{k}.so").into(),
        kind: Kind::File,
        stamp,
        pages: pages(k),
        stale: pages(100),
        weight: 0.5,
        used_by: UsedBy::Unknown,
    };
    Launch {
        program: Program::of_exe(format!("/usr/bin/program{n}")),
        uid: 1000,
        began_ns: (NOW_S - 100) * SECOND as i64,
        took: Duration::from_millis(300),
        ended: LaunchEnd::Quiet,
        set: FileSet { files: (0..3).map(touched).collect() },
        cold_bytes: 1 << 20,
    }
}

fn id(n: u64) -> ProgramId {
    launch(n).program.id()
}

fn made(dir: &Path) {
    let mut keep = ProgramStore::open(dir, "boot", NOW_S).expect("a store").store;
    for n in 0..3 {
        let launch = launch(n);
        let _ = keep.add_launch(&launch, &launch.set, NOW_S).expect("room");
    }
    let start = UserEvent { at_s: NOW_S as f64, user: 1, event: Event::Start(id(0)) };
    keep.add_events(&[start]).expect("room");
    keep.put_state("eke", 1, b"{}").expect("room");
}

fn good() -> &'static [u8] {
    static GOOD: OnceLock<Vec<u8>> = OnceLock::new();
    GOOD.get_or_init(|| {
        let dir = scratch::empty("good");
        made(&dir);
        let file = dir.join(NAME);
        let connection = Connection::open(&file).expect("a store");
        let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()));
        drop(connection);
        std::fs::read(file).expect("a store")
    })
}

/// Calls every query of a store.
fn asked(keep: &ProgramStore) -> Vec<Decision> {
    if let Ok(records) = keep.records(NOW_S) {
        for record in records {
            assert!(record.weight.is_finite(), "{record:?}");
            let _ = record.program.to_string();
        }
    }
    for n in 0..3 {
        if let Ok(Some(known)) = keep.program(id(n), NOW_S) {
            assert!(known.set.files.iter().all(|f| (0.0..=1.0).contains(&f.weight)));
        }
    }
    if let Ok(events) = keep.events() {
        assert!(events.iter().all(|happened| happened.at_s.is_finite()));
    }
    let _ = (keep.state("eke", 1), keep.bytes(), keep.data_version());
    keep.decisions(None, 100).unwrap_or_default()
}

/// Checks that a store continues to work.
fn goes_on(dir: &Path) {
    let Ok(opened) = ProgramStore::open(dir, "another boot", NOW_S + 5) else { return };
    let mut keep = opened.store;
    let decisions = asked(&keep);
    let launch = launch(1);
    let learned = keep.add_launch(&launch, &launch.set, NOW_S + 9);
    if learned.is_ok() && opened.set_aside.is_some() {
        let known = keep.program(launch.program.id(), NOW_S + 9);
        assert!(matches!(known, Ok(Some(_))), "a new store does not keep");
    }
    let _ = (
        keep.count_launches(&[UnlearnedLaunch { id: id(0), at_s: NOW_S }], NOW_S + 10),
        keep.add_decisions(&decisions),
    );
    let _ = (keep.forget_file(Path::new("/usr/lib/lib1-1.so")), keep.forget_program(id(2)));
}

/// A store with changed bytes.
pub fn prefetch_store(data: &[u8]) {
    let dir = scratch::empty("store");
    std::fs::write(dir.join(NAME), patched(good(), data)).expect("a file");
    if let Ok(keep) = ProgramStore::existing(&dir, Access::Read) {
        asked(&keep);
    }
    goes_on(&dir);
}

const TABLES: [(&str, &[&str]); 8] = [
    ("meta", &["value"]),
    (
        "program",
        &[
            "id",
            "launches",
            "learned",
            "last_seen_s",
            "took_ms",
            "cold_bytes",
            "coldest_ms",
            "coldest_bytes",
            "weight",
            "weight_s",
            "exe",
            "script",
        ],
    ),
    ("file", &["hash", "path", "kind", "dev", "ino", "size", "mtime_ns", "boot", "version"]),
    ("touched", &["files", "program"]),
    ("account", &["users", "files", "program"]),
    ("event", &["at_ms", "user", "kind", "program"]),
    ("decision", &["at_s", "occasion", "program", "probability", "outcome", "used_bytes", "wasted_bytes"]),
    ("state", &["version", "bytes"]),
];

fn value(input: &mut Input<'_>) -> Value {
    match input.u8() % 5 {
        0 => Value::Integer(input.i64()),
        1 => Value::Real(f64::from_bits(input.u64())),
        2 => Value::Text(text(input.piece()).into_owned()),
        3 => Value::Blob(input.piece().to_vec()),
        _ => Value::Null,
    }
}

/// A whole store with arbitrary values in its rows.
pub fn prefetch_rows(data: &[u8]) {
    let dir = scratch::empty("rows");
    std::fs::write(dir.join(NAME), good()).expect("a file");
    let connection = Connection::open(dir.join(NAME)).expect("a store");
    let _ = connection.execute_batch("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; BEGIN");
    let mut input = Input(data);
    for _ in 0..16 {
        if input.is_empty() {
            break;
        }
        let (table, columns) = TABLES[usize::from(input.u8()) % TABLES.len()];
        let column = columns[usize::from(input.u8()) % columns.len()];
        let row = input.u8() % 4;
        let which = if row == 0 { String::new() } else { format!(" WHERE rowid = {row}") };
        let which = if matches!(table, "meta" | "state") { String::new() } else { which };
        // The table rejects invalid rows.
        let _ = connection.execute(&format!("UPDATE {table} SET {column} = ?{which}"), [value(&mut input)]);
    }
    let _ = connection.execute_batch("COMMIT; PRAGMA journal_mode = WAL");
    drop(connection);
    if let Ok(keep) = ProgramStore::existing(&dir, Access::Read) {
        asked(&keep);
    }
    goes_on(&dir);
}

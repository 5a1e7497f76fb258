//! A busy machine, as the screen's tests show it.

use eke_model::histogram::Histogram;
use eke_model::model::Model;
use eke_model::sample::{Memory, Pressure};
use eke_model::snapshot::{
    AgentState, Event, GuardState, IoLatency, IoState, Machine, PrefetchState, Snapshot,
};
use eke_model::step::Prediction;
use eke_model::units::{Bytes, Nanos};
use eke_present::refresh::{Cache, CacheStats, Reads, Refresh};
use eke_top::view::{Means, View};

#[allow(dead_code, reason = "one of the tests draws with colours alone")]
pub const PLAIN: Means = Means { colours: false, ascii: false };

fn pressure(some_avg10: f64, full_avg10: f64, some_avg60: f64, full_avg60: f64) -> Option<Pressure> {
    Some(Pressure { some_avg10, some_avg60, full_avg10, full_avg60, ..Pressure::default() })
}

fn machine(step: u64) -> Machine {
    let memory = Memory {
        total: Bytes::mib(3_900),
        free: Bytes::mib(220 + step),
        available: Bytes::mib(900 + step),
        anonymous: Bytes::mib(1_900 - step),
        file_cache: Bytes::mib(700),
        shared: Bytes::mib(120),
        ..Memory::default()
    };
    Machine {
        memory,
        memory_pressure: pressure(24.1 - step as f64 / 10.0, 3.2, 12.0, 1.1),
        io_pressure: pressure(4.5, 1.0, 2.25, 0.4),
        cpu_pressure: pressure(0.4, 0.0, 0.2, 0.0),
        page_bytes: 4096,
        ..Machine::default()
    }
}

fn model(step: u64) -> Model {
    Model {
        ram: Bytes::mib(3_900),
        available: Bytes::mib(900 + step),
        held: Bytes::mib(640 + step),
        pool: Bytes::mib(210),
        saved: Bytes::mib(430 + step),
        effective_ratio: Some((640 + step) as f64 / 210.0),
        incompressible_share: Some(0.03),
        pages_in_per_s: 120.0 + 3.0 * step as f64,
        pages_out_per_s: 30.0,
        major_faults_per_s: 12.0,
        waiting_share: Some(0.2),
        kswapd_cpu_share: 0.021,
        idle_cpu_share: 0.8,
        oom_kills: 0,
        interval_s: 1.0,
    }
}

fn events(now_s: u64) -> Vec<Event> {
    let ago = |s, text: &str| Event { unix_s: now_s - s, text: text.into(), ..Event::default() };
    vec![
        ago(9_000, "Adopted the plan that `eke up` applied 4 s ago: 3 steps."),
        ago(
            640,
            "Recompressed 12 MiB of idle pages of zram1 with zstd in 0.8 s: 4 MiB freed; nobody waited for memory for 30 s.",
        ),
        ago(
            75,
            "The compression ratio was predicted 3.6, is 3.1 (of 640 MiB held): swapped pages compress less than the sample; `eke plan` measures again.",
        ),
        ago(
            12,
            "Added zram2 of 2.0 GiB: zram1 is 86 % full, and the pool at its real ratio takes 210 MiB of 3.0 GiB.",
        ),
    ]
}

pub fn snapshot(step: u64) -> Snapshot {
    let unix_s = 1_700_000_000 + step;
    Snapshot {
        agent: Some(AgentState { pid: 1234, up_s: 9_000 + step, resident: Bytes(3_565_158), cpu_ms: 450 }),
        applied: true,
        backend: "zram (zstd)".into(),
        prediction: Some(Prediction {
            ratio: 3.6,
            holds_times_ram: 2.4,
            load_p50_ns: 5_700,
            load_p99_ns: 13_100,
            incompressible_share: 0.02,
        }),
        unix_s,
        model: model(step),
        machine: machine(step),
        agent_silent: None,
        group_at_limit: None,
        guard: Some(GuardState::default()),
        prefetch: Some(PrefetchState {
            programs: 41,
            launches: 40,
            predicted: 31,
            ahead: Bytes::mib(200),
            used: Bytes::mib(120),
            at_exec: Bytes::mib(64),
            ..PrefetchState::default()
        }),
        io: None,
        events: events(unix_s),
        ended: Vec::new(),
    }
}

/// A governed disk, measured.
#[allow(dead_code, reason = "one of the tests draws without disks")]
pub fn disks() -> IoState {
    let kind = |operation: &str, latencies_us: &[(u64, u64)]| {
        let mut late = Histogram::default();
        latencies_us.iter().for_each(|(us, count)| (0..*count).for_each(|_| late.record(us * 1_000)));
        IoLatency { operation: operation.into(), late, ..IoLatency::default() }
    };
    let latencies = vec![
        kind("read", &[(100, 80), (200, 40), (500, 3), (4_000, 1)]),
        kind("write", &[(5_000, 40), (9_000, 15), (20_000, 2)]),
        kind("flush", &[]),
    ];
    IoState { source: "bpf".into(), latencies, late_ms: 10_000, ..IoState::default() }
}

pub fn refresh(step: u64) -> Refresh {
    let stats = CacheStats {
        held: Bytes::mib(310),
        limit: Bytes::mib(400),
        raw: Bytes::mib(812),
        hits: 92_100 + 10 * step,
        misses: 7_900 + step,
        fast: 9_000,
        recompressed: 3_800,
        plain: 192,
        from_store: Bytes::mib(5_800 + step),
        from_backing: Bytes::mib(494),
        store_cost: Some(Nanos(21_300)),
        backing_cost: Some(Nanos(5_200_000)),
    };
    let other =
        Cache { place: "/home/photos".into(), stats: Err("only its user and root see details".into()) };
    Refresh {
        snapshot: snapshot(step),
        caches: vec![Cache { place: "/srv/www".into(), stats: Ok(stats) }, other],
        reads: Some(Reads { p50: Nanos(90_000), p99: Nanos(4_100_000) }),
    }
}

/// After this number of refreshes, one a second.
pub fn view(means: Means, refreshes: u64) -> View {
    let mut view = View::new(means, 1_000);
    for step in 0..refreshes {
        view.refresh(Ok(refresh(step)), 1_000 * step);
    }
    view
}

//! The machine's memory and pressure.

use eke_model::sample::Pressure;
use eke_model::snapshot::Machine;
use eke_model::units::Bytes;

use crate::metric::{Metric, Sample, maybe, one};
use crate::reading::{Reading, other_ram};

pub const METRICS: [Metric; 10] = [
    Metric::gauge("eke_ram_bytes", "bytes", "RAM that the kernel manages, without reserved huge pages.", |r| {
        bytes(r.snapshot.model.ram)
    }),
    Metric::gauge(
        "eke_available_bytes",
        "bytes",
        "RAM available to new programs without swapping, as the kernel estimates it.",
        |r| bytes(r.snapshot.model.available),
    ),
    Metric::gauge(
        "eke_memory_bytes",
        "bytes",
        "How RAM is used; the parts do not overlap, and together they are eke_ram_bytes.",
        parts,
    )
    .by(&["use"]),
    Metric::counter(
        "eke_pressure_seconds",
        "seconds",
        "Time in which some task, or all of them (full), waited for the resource, since boot. Absent where the kernel does not count it (PSI).",
        pressures,
    )
    .by(&["resource", "tasks"]),
    Metric::counter("eke_major_faults", "", "Page faults that had to wait for a disk or a compressed pool, since boot.", |r| {
        one(r.snapshot.machine.vm.pgmajfault as f64)
    }),
    Metric::counter(
        "eke_refaults",
        "",
        "Pages that were needed again soon after they were evicted, since boot.",
        refaults,
    )
    .by(&["of"]),
    Metric::counter("eke_oom_kills", "", "Processes that the kernel killed for lack of memory, since boot.", |r| {
        one(r.snapshot.model.oom_kills as f64)
    }),
    Metric::gauge(
        "eke_idle_cpu_ratio",
        "ratio",
        "Share of the time of all CPUs that was idle, over the last interval of the agent.",
        |r| rate(r, r.snapshot.model.idle_cpu_share),
    ),
    Metric::gauge(
        "eke_kswapd_cpu_ratio",
        "ratio",
        "CPU time of the kernel's reclaim threads as a share of one CPU, over the last interval; most compression is in it.",
        |r| rate(r, r.snapshot.model.kswapd_cpu_share),
    ),
    Metric::gauge("eke_page_bytes", "bytes", "Size of the kernel's pages.", |r| {
        one(r.snapshot.machine.page_bytes as f64)
    }),
];

/// A number of bytes as a sample.
pub fn bytes(bytes: Bytes) -> Vec<Sample> {
    one(bytes.0 as f64)
}

/// A share over an interval; absent before the first interval.
fn rate(reading: &Reading, value: f64) -> Vec<Sample> {
    maybe((reading.snapshot.model.interval_s > 0.0).then_some(value))
}

fn parts(reading: &Reading) -> Vec<Sample> {
    let (memory, pool) = (&reading.snapshot.machine.memory, reading.snapshot.model.pool);
    let parts = [
        ("anonymous", memory.anonymous),
        ("shared", memory.shared),
        ("compressed_pool", pool),
        ("other", other_ram(memory, pool)),
        ("file_cache", memory.file_cache),
        ("free", memory.free),
    ];
    parts.into_iter().map(|(name, bytes)| Sample::of("use", name, bytes.0 as f64)).collect()
}

/// Microseconds to seconds.
const US: f64 = 1e6;

fn pressures(reading: &Reading) -> Vec<Sample> {
    let Machine { memory_pressure, io_pressure, cpu_pressure, .. } = &reading.snapshot.machine;
    let of = |resource: &'static str, pressure: &Option<Pressure>| {
        pressure.map(|p| {
            let sample =
                |tasks, us: u64| Sample::of("resource", resource, us as f64 / US).and("tasks", tasks);
            [sample("some", p.some_total_us), sample("full", p.full_total_us)]
        })
    };
    let all = [of("memory", memory_pressure), of("io", io_pressure), of("cpu", cpu_pressure)];
    all.into_iter().flatten().flatten().collect()
}

fn refaults(reading: &Reading) -> Vec<Sample> {
    let vm = &reading.snapshot.machine.vm;
    vec![
        Sample::of("of", "anonymous", vm.refault_anon as f64),
        Sample::of("of", "file", vm.refault_file as f64),
    ]
}

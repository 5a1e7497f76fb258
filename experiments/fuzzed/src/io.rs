//! Latencies from files, from `zpool iostat`, and from another process.

use eke_io::counters::{Counters, Window};
use eke_io::sensor::{stat, zpool as pools};
use eke_io::verdict::threads;

use crate::again::comes_back;
use crate::input::text;

/// `zpool iostat -wHp`.
pub fn zpool(data: &[u8]) {
    for classes in pools::parse(&text(data)).values() {
        for latency in classes.values() {
            ask(&latency.whole);
        }
    }
}

fn ask(histogram: &eke_io::Histogram) {
    let _ = (
        histogram.mean_ns(),
        histogram.deviation_ns(),
        histogram.quantile_ns(0.99),
        histogram.share_over(1 << 20),
    );
    let _ = histogram.rows().count();
    comes_back(histogram);
}

/// `/sys/block/*/stat` at two times, a window of another process, and files about processes.
pub fn io_latencies(data: &[u8]) {
    let text = text(data);
    let mut counted = text.split("--\n").filter_map(stat::parse);
    if let (Some(before), Some(now)) = (counted.next(), counted.next()) {
        let reading =
            |counted| Counters { devices: [("sda".to_owned(), counted)].into(), ..Counters::default() };
        let mut window = Window::between(&reading(before), &reading(now), 1.0, "stat");
        let other = window.clone();
        window.merge(&other);
    }
    let _ = stat::parse_inflight(&text);
    let _ = eke_linux::parse::process_stat::parse(&text).as_ref().map(threads::task);
    let Ok(mut window) = serde_json::from_str::<Window>(&text) else { return };
    comes_back(&window);
    let other = window.clone();
    window.merge(&other);
    for device in &window.devices {
        let all = device.sum(|_| true);
        ask(&all.whole);
        let _ = all.since(&device.awaited_reads());
    }
}

//! `io watch --csv`.

use std::fmt::Write as _;

use eke_io::Histogram;
use eke_io::counters::{ClassLatency, Device};

/// The names of the columns. Times are in microseconds; an empty cell is unknown.
pub const HEADER: &str = "unix_s,seconds,device,class,count,per_s,bytes_per_s,mean_us,deviation_us,p50_us,p99_us,p999_us,queue_mean_us,queue_p99_us,device_mean_us,device_p99_us,errors\n";

/// A row for each class of a disk.
pub fn rows(unix_s: u64, seconds: f64, device: &Device) -> String {
    device.classes.iter().map(|class| row(unix_s, seconds, &device.name, class)).collect()
}

fn row(unix_s: u64, seconds: f64, device: &str, of: &ClassLatency) -> String {
    let latency = &of.latency;
    let whole = &latency.whole;
    let rate = |count: u64| count as f64 / seconds.max(1e-9);
    let class = of.class.to_string().replace(", ", "-");
    let mut out = format!(
        "{unix_s},{seconds:.3},{device},{class},{},{:.1},{:.0}",
        whole.count,
        rate(whole.count),
        rate(latency.bytes.0)
    );
    let whole = [
        whole.mean_ns(),
        whole.deviation_ns(),
        whole.quantile_ns(0.5),
        whole.quantile_ns(0.99),
        whole.quantile_ns(0.999),
    ];
    let parts = [&latency.queue, &latency.device].map(|h: &Histogram| [h.mean_ns(), h.quantile_ns(0.99)]);
    for ns in whole.into_iter().chain(parts.into_iter().flatten()) {
        let _ = write!(out, ",{}", ns.map_or(String::new(), |ns| format!("{:.1}", ns / 1e3)));
    }
    let _ = writeln!(out, ",{}", latency.errors);
    out
}

#[cfg(test)]
mod tests {
    use eke_io::{Class, Latency, Mode, Operation};
    use eke_model::units::Bytes;

    use super::*;

    #[test]
    fn a_row_has_as_many_columns_as_the_header() {
        let mut latency = Latency { bytes: Bytes(8192), ..Latency::default() };
        latency.whole.record(2_000_000);
        latency.whole.record(2_000_000);
        let class = Class::new(Operation::Write, Mode::Sync);
        let device = Device {
            name: "sda".into(),
            classes: vec![ClassLatency { class, latency }],
            ..Device::default()
        };
        let rows = rows(9, 2.0, &device);
        assert!(rows.starts_with("9,2.000,sda,write-sync,2,1.0,4096,2000.0,0.0,"), "{rows}");
        assert!(rows.ends_with(",,,,0\n"), "no queue wait: {rows}");
        assert_eq!(rows.matches(',').count(), HEADER.matches(',').count());
    }
}

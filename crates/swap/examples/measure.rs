//! Prints the facts and the measurement of this machine: `cargo run --release -p eke-swap --example measure [--json] [PID...]`.

use std::error::Error;

use eke_linux::Root;
use eke_model::units::Nanos;
use eke_swap::measure::{AlgorithmMeasurement, DiskLatency, Limits, Measured, Scope, Unjournaled, measure};
use eke_swap::probe::probe;

fn main() -> Result<(), Box<dyn Error>> {
    let root = Root::host();
    let facts = probe(&root)?;
    let limits = Limits::default();
    let processes: Vec<u32> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let about = Scope { processes: (!processes.is_empty()).then_some(processes), ..Scope::default() };
    let measured = measure(&root, &facts, &limits, &about, &mut Unjournaled::new(&root))?;
    if std::env::args().any(|a| a == "--json") {
        println!("{}", serde_json::to_string_pretty(&(&facts, &measured))?);
        return Ok(());
    }
    let mut shown = facts.clone();
    shown.memory_groups_v1.truncate(3);
    println!("{shown:#?}\n");
    print(&measured);
    Ok(())
}

fn print(m: &Measured) {
    let p = &m.pages;
    println!(
        "{} pages of {} processes ({} unreadable): {} zero, {} same-filled; {} ms{}",
        p.sampled,
        p.processes,
        p.unreadable_processes,
        p.zero,
        p.same_filled,
        m.took_ms,
        if m.estimated { ", estimated" } else { "" }
    );
    println!(
        "{:<18} {:>5} {:>6} {:>6} {:>6} {:>6} {:>21} {:>21}",
        "algorithm", "pages", "ratio", "low", "high", "huge", "store p50 / p99", "load p50 / p99"
    );
    m.algorithms.iter().for_each(row);
    for (what, disk) in [("swap disk", &m.swap_disk), ("file read", &m.file_read)] {
        if let Some(d) = disk {
            print_disk(what, d);
        }
    }
    for u in &m.unmeasured {
        println!("not measured: {}: {}", u.what, u.why);
    }
}

fn row(a: &AlgorithmMeasurement) {
    let name = a.label();
    if let Some(why) = &a.unusable {
        println!("{name:<18} unusable: {why}");
        return;
    }
    let pair = |p50: Nanos, p99: Nanos| format!("{p50:>10} {p99:>10}");
    println!(
        "{name:<18} {:>5} {:>6.2} {:>6.2} {:>6.2} {:>5.1}% {} {} {}",
        a.pages,
        a.ratio,
        a.ratio_low,
        a.ratio_high,
        a.incompressible_share * 100.0,
        pair(a.store_p50, a.store_p99),
        pair(a.load_p50, a.load_p99),
        if a.estimated { "estimated" } else { "" }
    );
}

fn print_disk(what: &str, d: &DiskLatency) {
    println!(
        "{what}: {} on {}: {} reads, p50 {}, p99 {}{}",
        d.what,
        d.device.as_deref().unwrap_or("?"),
        d.reads,
        d.p50,
        d.p99,
        if d.direct { ", direct" } else { "" }
    );
}

//! Facts of the machine that are noted in a recording.

use eke_linux::{Root, parse, read};

/// By key: `kernel`, `cpus`, `ram_bytes`, `swap`, `zram`, `swappiness`, `zswap`. What the machine lacks is left out.
pub(crate) fn facts(root: &Root) -> Vec<(&'static str, String)> {
    let file = |path: &str| root.read(path).ok().map(|text| text.trim().to_owned());
    let memory = file("proc/meminfo").map(|text| parse::meminfo::parse(&text));
    let cpus = file("proc/stat").map(|text| text.lines().filter(|l| is_cpu(l)).count());
    let facts = [
        ("kernel", file("proc/sys/kernel/osrelease")),
        ("cpus", cpus.filter(|n| *n > 0).map(|n| n.to_string())),
        ("ram_bytes", memory.map(|m| m.total.0.to_string())),
        ("swap", Some(swap(root))),
        ("zram", zram(root)),
        ("swappiness", file("proc/sys/vm/swappiness")),
        ("zswap", zswap(root)),
    ];
    facts.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

/// True for `cpu0`, false for the sum `cpu`.
fn is_cpu(line: &str) -> bool {
    line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn swap(root: &Root) -> String {
    let areas = read::swaps(root).unwrap_or_default();
    let words: Vec<String> =
        areas.iter().map(|a| format!("{} {} (priority {})", a.path, a.size, a.priority)).collect();
    if words.is_empty() { "none".into() } else { words.join(", ") }
}

fn zram(root: &Root) -> Option<String> {
    let devices = read::zram_stats(root).unwrap_or_default();
    let words: Vec<String> =
        devices.iter().map(|z| format!("{} {} {}", z.name, z.algorithm, z.disksize)).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn zswap(root: &Root) -> Option<String> {
    let get = |name: &str| {
        let text = root.read(format!("sys/module/zswap/parameters/{name}")).ok()?;
        Some(text.trim().to_owned())
    };
    if get("enabled")? != "Y" {
        return Some("off".into());
    }
    Some(format!("{}, {} % of RAM", get("compressor")?, get("max_pool_percent")?))
}

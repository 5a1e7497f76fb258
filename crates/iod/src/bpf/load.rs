//! From the compiled object to programs that the kernel accepted.

use eke_bpf::load;
use eke_io::sensor::{Attribution, Refused};
use eke_linux::Root;
use eke_linux::parse::release::version;
use libbpf_rs::{Link, Object, OpenObject};

/// The tracepoint that runs in the context of the submitting process (since Linux 6.5).
const START: &str = "btf_trace_block_io_start";
/// Classes of one device.
const CLASSES: u32 = 8;
/// Devices that may appear while the programs run.
const MORE_DEVICES: u32 = 8;

/// The programs, attached.
pub struct Loaded {
    pub object: Object,
    pub links: Vec<Link>,
    /// What is coarser on this kernel than it could be.
    pub coarse: Vec<String>,
}

/// Loads and attaches the programs, with room for `devices` devices.
pub fn load(root: &Root, attribution: Attribution, devices: usize) -> Result<Loaded, Refused> {
    check_release(root)?;
    let by_process = attribution == Attribution::Process;
    let has_start = by_process && load::described(root, &[START]).map_err(refused)? == [true];
    let mut open = load::open(eke_bpf::object!("latency")).map_err(refused)?;
    set_attribution(&mut open, attribution)?;
    for mut program in open.progs_mut() {
        if program.name() == "on_start" {
            program.set_autoload(has_start);
        }
    }
    for mut map in open.maps_mut().filter(|map| map.name() == "latencies") {
        let entries =
            (u32::try_from(devices).unwrap_or(u32::MAX / 64) + MORE_DEVICES).saturating_mul(CLASSES);
        map.set_max_entries(entries).map_err(|e| Refused::new("size the BPF map of latencies", e))?;
    }
    let object = load::load(open).map_err(refused)?;
    let links = load::attach(&object, |_| true).map_err(refused)?;
    let is_coarse = by_process && !has_start;
    let coarse = "requests count for the process that hands them to the driver; Linux 6.5 knows which one submitted them";
    Ok(Loaded { object, links, coarse: if is_coarse { vec![coarse.to_owned()] } else { Vec::new() } })
}

/// The arguments of block_rq_issue and block_rq_complete differ before 5.11 (commit a54895fa057c).
fn check_release(root: &Root) -> Result<(), Refused> {
    let release =
        root.read("proc/sys/kernel/osrelease").map_err(|e| Refused::new("trace requests by BPF", e))?;
    if is_new_enough(&release) {
        return Ok(());
    }
    Err(Refused::new("trace requests by BPF", format!("that needs Linux 5.11, this is {}", release.trim())))
}

/// An unreadable version counts as old.
fn is_new_enough(release: &str) -> bool {
    version(release).is_some_and(|version| version >= (5, 11))
}

/// `attribution` is the first constant of the programs.
fn set_attribution(open: &mut OpenObject, attribution: Attribution) -> Result<(), Refused> {
    let number: u32 = match attribution {
        Attribution::None => 0,
        Attribution::Process => 1,
        Attribution::Cgroup => 2,
    };
    load::set_first_constants(open, &[number], "set what BPF programs count by").map_err(refused)
}

fn refused(refused: load::LoadError) -> Refused {
    Refused::new(refused.tried, refused.why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_their_numbers() {
        let new = ["5.11.0", "6.1.0-25-amd64\n", "5.15", "10.0.0"];
        assert!(new.into_iter().all(is_new_enough));
        assert!(["5.10.200", "4.19.0", "", "x"].into_iter().all(|old| !is_new_enough(old)));
    }
}

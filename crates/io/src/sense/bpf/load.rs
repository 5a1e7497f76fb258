//! From the compiled object to programs that the kernel took.

use eke_bpf::load;
use eke_linux::Root;
use libbpf_rs::{Link, Object, OpenObject};

use super::super::{By, Refused};

/// The tracepoint that tells who asks (since Linux 6.5).
const START: &str = "btf_trace_block_io_start";
/// Classes of one device, and devices that may still come.
const CLASSES: u32 = 8;
const MORE_DEVICES: u32 = 8;

/// The object, loaded and attached for `devices` devices, and what it cannot see on this kernel.
pub fn load(root: &Root, by: By, devices: usize) -> Result<(Object, Vec<Link>, Vec<String>), Refused> {
    check_release(root)?;
    let told_at_start = by == By::Process && load::described(root, &[START])? == [true];
    let mut open = load::open(eke_bpf::object!("latency"))?;
    set_by(&mut open, by)?;
    for mut program in open.progs_mut() {
        if program.name() == "on_start" {
            program.set_autoload(told_at_start);
        }
    }
    for mut map in open.maps_mut().filter(|map| map.name() == "latencies") {
        let entries =
            (u32::try_from(devices).unwrap_or(u32::MAX / 64) + MORE_DEVICES).saturating_mul(CLASSES);
        map.set_max_entries(entries).map_err(|e| Refused::new("size the BPF map of latencies", e))?;
    }
    let object = load::load(open)?;
    let links = load::attach(&object, |_| true)?;
    let is_coarse = by == By::Process && !told_at_start;
    let coarse = "who asks is told by who hands the request to the driver: Linux 6.5 tells better";
    Ok((object, links, if is_coarse { vec![coarse.to_owned()] } else { Vec::new() }))
}

/// The arguments of block_rq_issue and block_rq_complete are others before 5.11 (commit a54895fa057c).
fn check_release(root: &Root) -> Result<(), Refused> {
    let release =
        root.read("proc/sys/kernel/osrelease").map_err(|e| Refused::new("trace requests by BPF", e))?;
    if is_new_enough(&release) {
        return Ok(());
    }
    Err(Refused::new("trace requests by BPF", format!("that needs Linux 5.11, this is {}", release.trim())))
}

fn is_new_enough(release: &str) -> bool {
    let mut numbers =
        release.split(|c: char| !c.is_ascii_digit()).map(|word| word.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (5, 11)
}

/// `count_by` is the first constant.
fn set_by(open: &mut OpenObject, by: By) -> Result<(), Refused> {
    let number: u32 = match by {
        By::Nobody => 0,
        By::Process => 1,
        By::Cgroup => 2,
    };
    Ok(load::set_first_constants(open, &[number], "tell BPF programs by whom to count")?)
}

impl From<load::LoadError> for Refused {
    fn from(refused: load::LoadError) -> Self {
        Self::new(refused.tried, refused.why)
    }
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

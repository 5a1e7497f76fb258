//! From the compiled object to programs that the kernel took.

use std::sync::Mutex;

use eke_kernel::Root;
use libbpf_rs::{Link, Object, ObjectBuilder, OpenObject, PrintLevel};

use super::super::{By, Refused};

/// An object for the machine's own memory order, compiled by build.rs; aligned, for libelf reads it in place.
#[repr(align(8))]
struct Aligned<T: ?Sized>(T);
static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/latency.bpf.o")));

/// Where the kernel describes itself (CONFIG_DEBUG_INFO_BTF).
const BTF: &str = "sys/kernel/btf/vmlinux";
/// The tracepoint that tells who asks (since Linux 6.5).
const START: &[u8] = b"\0btf_trace_block_io_start\0";
/// Classes of one device, and devices that may still come.
const CLASSES: u32 = 8;
const MORE_DEVICES: u32 = 8;

/// What libbpf said while it loaded: the reason of the kernel's answer. It has one place for this in a process.
static SAID: Mutex<String> = Mutex::new(String::new());
const SAID_BYTES: usize = 2048;

/// The object, loaded and attached for `devices` devices, and what it cannot see on this kernel.
pub fn load(root: &Root, by: By, devices: usize) -> Result<(Object, Vec<Link>, Vec<String>), Refused> {
    check_release(root)?;
    let told_at_start = by == By::Process && has_start(root)?;
    let mut open = quietly(|| ObjectBuilder::default().open_memory(&OBJECT.0), "open the BPF object")?;
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
    let object = quietly(|| open.load(), "load BPF programs (it takes CAP_BPF and CAP_PERFMON, or root)")?;
    let links = attach(&object)?;
    let is_coarse = by == By::Process && !told_at_start;
    let coarse = "who asks is told by who hands the request to the driver: Linux 6.5 tells better";
    Ok((object, links, if is_coarse { vec![coarse.to_owned()] } else { Vec::new() }))
}

fn attach(object: &Object) -> Result<Vec<Link>, Refused> {
    let loaded = object.progs_mut().filter(|program| program.autoload());
    loaded
        .map(|program| {
            let tried = format!("attach the BPF program {}", program.name().to_string_lossy());
            quietly(|| program.attach_trace(), &tried)
        })
        .collect()
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

fn has_start(root: &Root) -> Result<bool, Refused> {
    let tried = format!("read {}, by which BPF programs know the kernel", root.path(BTF).display());
    let btf = root.read_bytes(BTF).map_err(|e| Refused::new(tried, e))?;
    Ok(btf.windows(START.len()).any(|window| window == START))
}

/// `count_by` is the first constant.
fn set_by(open: &mut OpenObject, by: By) -> Result<(), Refused> {
    let number: u32 = match by {
        By::Nobody => 0,
        By::Process => 1,
        By::Cgroup => 2,
    };
    let tried = "tell BPF programs by whom to count";
    let map = open.maps_mut().find(|map| map.name().as_encoded_bytes().ends_with(b".rodata"));
    let mut map = map.ok_or_else(|| Refused::new(tried, "no .rodata in the object"))?;
    let value = map.initial_value_mut().and_then(|bytes| bytes.get_mut(..4));
    let value = value.ok_or_else(|| Refused::new(tried, "its .rodata is too short"))?;
    value.copy_from_slice(&number.to_ne_bytes());
    Ok(())
}

/// libbpf's words go into the error, not to standard error.
fn quietly<T>(step: impl FnOnce() -> libbpf_rs::Result<T>, tried: &str) -> Result<T, Refused> {
    libbpf_rs::set_print(Some((PrintLevel::Warn, note)));
    if let Ok(mut said) = SAID.lock() {
        said.clear();
    }
    step().map_err(|e| {
        let said = SAID.lock().map(|said| reason(&said)).unwrap_or_default();
        Refused::new(tried, if said.is_empty() { e.to_string() } else { format!("{e} ({said})") })
    })
}

fn note(_: PrintLevel, text: String) {
    if let Ok(mut said) = SAID.lock() {
        if said.len() < SAID_BYTES {
            said.push_str(&text);
        }
    }
}

/// What of libbpf's words tells people something: not that memory locked has a limit, which it says of any refusal.
fn reason(said: &str) -> String {
    let lines = said
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("libbpf:") && !line.contains("ulimit") && !line.contains("MEMLOCK"));
    lines.take(3).collect::<Vec<_>>().join("; ")
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

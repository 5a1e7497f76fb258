//! From the compiled object to programs that the kernel took.

use std::fs::File;
use std::sync::Mutex;

use eke_kernel::Root;
use libbpf_rs::{Link, Object, ObjectBuilder, OpenObject, PrintLevel};

use super::super::btf;
use super::super::tracer::Refused;

/// An object for the machine's own memory order, compiled by build.rs; aligned, for libelf reads it in place.
#[repr(align(8))]
struct Aligned<T: ?Sized>(T);
static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/launch.bpf.o")));

/// Where the kernel describes itself (CONFIG_DEBUG_INFO_BTF).
const BTF: &str = "sys/kernel/btf/vmlinux";

/// Programs whose tracepoints not all kernels have, with what is not seen without.
const OPTIONAL: [(&str, &str, &str); 3] = [
    ("on_fault", "btf_trace_mm_filemap_fault", "page faults"),
    ("on_map", "btf_trace_mm_filemap_map_pages", "pages mapped around faults"),
    ("on_read", "btf_trace_mm_filemap_get_pages", "reads of what is in memory"),
];

/// Those without which nothing is seen.
const NEEDED: [&str; 4] = [
    "btf_trace_sched_process_exec",
    "btf_trace_sched_process_exit",
    "btf_trace_sched_process_fork",
    "btf_trace_mm_filemap_add_to_page_cache",
];

/// What libbpf said while it loaded: the reason of the kernel's answer. It has one place for this in a process.
static SAID: Mutex<String> = Mutex::new(String::new());
const SAID_BYTES: usize = 2048;

/// The object, loaded, and what it cannot see on this kernel.
pub fn load(root: &Root) -> Result<(Object, Vec<String>), Refused> {
    let has = described(root)?;
    let blind: Vec<&(&str, &str, &str)> = OPTIONAL.iter().filter(|(_, name, _)| !has(name)).collect();
    if let Some(lacking) = NEEDED.iter().find(|name| !has(name)) {
        return Err(Refused::new(
            "trace by BPF",
            format!("this kernel has no tracepoint {}", &lacking["btf_trace_".len()..]),
        ));
    }
    let mut open = quietly(|| ObjectBuilder::default().open_memory(&OBJECT.0), "open the BPF object")?;
    set_page_shift(&mut open)?;
    for mut program in open.progs_mut() {
        let is_blind = blind.iter().any(|(name, ..)| program.name() == *name);
        program.set_autoload(!is_blind);
    }
    let object = quietly(|| open.load(), "load BPF programs (it takes CAP_BPF and CAP_PERFMON, or root)")?;
    Ok((object, blind_text(&blind)))
}

fn blind_text(blind: &[&(&str, &str, &str)]) -> Vec<String> {
    let what: Vec<&str> = blind.iter().map(|(.., what)| *what).collect();
    let text = format!(
        "this kernel does not tell of {} (Linux 6.12 does): what is learned is what came into memory, with what was read ahead in vain",
        what.join(", ")
    );
    if what.is_empty() { Vec::new() } else { vec![text] }
}

/// Is this name one that the kernel describes?
fn described(root: &Root) -> Result<impl Fn(&str) -> bool, Refused> {
    let path = root.path(BTF);
    let tried = || format!("read {}, by which BPF programs know the kernel", path.display());
    let names: Vec<&str> = OPTIONAL.iter().map(|(_, name, _)| *name).chain(NEEDED).collect();
    let file = File::open(&path).map_err(|e| Refused::new(tried(), e))?;
    let found = btf::named(file, &names).map_err(|e| Refused::new(tried(), e))?;
    Ok(move |name: &str| names.iter().zip(&found).any(|(n, found)| *n == name && *found))
}

/// The machine's pages may be larger than 4 KiB: a file's end is in them.
fn set_page_shift(open: &mut OpenObject) -> Result<(), Refused> {
    let shift = rustix::param::page_size().trailing_zeros();
    let tried = "tell BPF programs the size of a page";
    let map = open.maps_mut().find(|map| map.name().as_encoded_bytes().ends_with(b".rodata"));
    let mut map = map.ok_or_else(|| Refused::new(tried, "no .rodata in the object"))?;
    let value = map.initial_value_mut().and_then(|bytes| bytes.get_mut(..4));
    value
        .ok_or_else(|| Refused::new(tried, "its .rodata is too short"))?
        .copy_from_slice(&shift.to_ne_bytes());
    Ok(())
}

/// Attaches the programs of these names that were loaded.
pub fn attach(object: &Object, names: &[&str]) -> Result<Vec<Link>, Refused> {
    let wanted = |program: &libbpf_rs::ProgramMut| {
        names.iter().any(|name| program.name() == *name) && program.autoload()
    };
    object
        .progs_mut()
        .filter(wanted)
        .map(|program| {
            let tried = format!("attach the BPF program {}", program.name().to_string_lossy());
            quietly(|| program.attach_trace(), &tried)
        })
        .collect()
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

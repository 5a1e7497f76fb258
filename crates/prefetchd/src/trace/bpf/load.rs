//! From the compiled object to programs that the kernel took.

use eke_bpf::load;
use eke_linux::Root;
use eke_model::units::PageSize;
use libbpf_rs::{Link, Object, OpenObject};

use super::super::way::Refused;

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

/// Those by which it is known what programs ask to have read (CONFIG_FTRACE_SYSCALLS).
const CALLS: [(&str, &str); 2] = [("on_call", "btf_trace_sys_enter"), ("on_return", "btf_trace_sys_exit")];

/// The object, loaded, and what it cannot see on this kernel.
pub fn load(root: &Root) -> Result<(Object, Vec<String>), Refused> {
    let has = described(root)?;
    let blind: Vec<&(&str, &str, &str)> = OPTIONAL.iter().filter(|(_, name, _)| !has(name)).collect();
    let deaf = CALLS.iter().any(|(_, name)| !has(name));
    if let Some(lacking) = NEEDED.iter().find(|name| !has(name)) {
        return Err(Refused::new(
            "trace by BPF",
            format!("this kernel has no tracepoint {}", &lacking["btf_trace_".len()..]),
        ));
    }
    let mut open = load::open(eke_bpf::object!("launch"))?;
    set_constants(&mut open, root.page_size())?;
    for mut program in open.progs_mut() {
        let is_blind = blind.iter().any(|(name, ..)| program.name() == *name);
        let is_deaf = deaf && CALLS.iter().any(|(name, _)| program.name() == *name);
        program.set_autoload(!is_blind && !is_deaf);
    }
    let object = load::load(open)?;
    Ok((object, blind_text(&blind).into_iter().chain(deaf.then(deaf_text)).collect()))
}

fn deaf_text() -> String {
    "this kernel does not tell of system calls (CONFIG_FTRACE_SYSCALLS): what programs ask for by madvise(2) or readahead(2), and do not \
     touch, is not learned"
        .to_owned()
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
    let optional = OPTIONAL.iter().map(|(_, name, _)| *name);
    let names: Vec<&str> = optional.chain(CALLS.map(|(_, name)| name)).chain(NEEDED).collect();
    let found = load::described(root, &names)?;
    Ok(move |name: &str| names.iter().zip(&found).any(|(n, found)| *n == name && *found))
}

/// The machine's pages may be larger than 4 KiB: a file's end is in them. System calls have other numbers on other machines.
fn set_constants(open: &mut OpenObject, page: PageSize) -> Result<(), Refused> {
    let shift = page.bytes().trailing_zeros();
    let asks = [libc::SYS_madvise, libc::SYS_fadvise64, libc::SYS_readahead];
    let numbers: Vec<u32> = [shift].into_iter().chain(asks.map(|number| number as u32)).collect();
    Ok(load::set_first_constants(open, &numbers, "tell BPF programs about the machine")?)
}

/// Attaches the programs of these names that were loaded.
pub fn attach(object: &Object, names: &[&str]) -> Result<Vec<Link>, Refused> {
    Ok(load::attach(object, |program| names.iter().any(|name| program == *name))?)
}

impl From<load::Refused> for Refused {
    fn from(refused: load::Refused) -> Self {
        Self::new(refused.tried, refused.why)
    }
}

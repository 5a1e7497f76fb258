//! Loads the compiled object's programs into the kernel.

use eke_bpf::load;
use eke_linux::Root;
use eke_model::units::PageSize;
use libbpf_rs::{Link, Object, OpenObject};

use super::super::method::TraceError;

/// Programs whose tracepoints some kernels lack, and what is then not traced.
const OPTIONAL: [(&str, &str, &str); 3] = [
    ("on_fault", "btf_trace_mm_filemap_fault", "page faults"),
    ("on_map", "btf_trace_mm_filemap_map_pages", "pages mapped around faults"),
    ("on_read", "btf_trace_mm_filemap_get_pages", "reads of what is in memory"),
];

/// The tracepoints that tracing requires.
const NEEDED: [&str; 4] = [
    "btf_trace_sched_process_exec",
    "btf_trace_sched_process_exit",
    "btf_trace_sched_process_fork",
    "btf_trace_mm_filemap_add_to_page_cache",
];

/// A helper that returns a thread's registers (Linux 5.15). On these architectures they have the number of its system call. So no program need run in
/// each system call of the machine.
const REGISTERS: &str = "BPF_FUNC_task_pt_regs";
const REGISTERS_TELL: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// The tracepoints of requested reads elsewhere (CONFIG_FTRACE_SYSCALLS).
const CALLS: [(&str, &str); 2] = [("on_call", "btf_trace_sys_enter"), ("on_return", "btf_trace_sys_exit")];

/// The tracepoint of requested disk reads (CONFIG_BLOCK).
const DISK_READS: (&str, &str) = ("on_disk_read", "btf_trace_block_bio_queue");

/// The loaded object, and what this kernel can trace.
pub struct Loaded {
    /// The object.
    pub object: Object,
    /// Whether uses of pages in memory are traced.
    pub sees_uses: bool,
    /// What is not traced, as sentences.
    pub limits: Vec<String>,
}

/// Loads the object.
pub fn load(root: &Root) -> Result<Loaded, TraceError> {
    let has = described(root)?;
    let missing: Vec<&(&str, &str, &str)> = OPTIONAL.iter().filter(|(_, name, _)| !has(name)).collect();
    let registers_tell = REGISTERS_TELL && has(REGISTERS);
    let no_calls = !registers_tell && CALLS.iter().any(|(_, name)| !has(name));
    if let Some(lacking) = NEEDED.iter().find(|name| !has(name)) {
        return Err(TraceError::new(
            "trace by BPF",
            format!("this kernel has no tracepoint {}", &lacking["btf_trace_".len()..]),
        ));
    }
    let mut open = load::open(eke_bpf::object!("launch"))?;
    set_constants(&mut open, root.page_size(), registers_tell)?;
    for mut program in open.progs_mut() {
        let is_missing = missing.iter().any(|(name, ..)| program.name() == *name);
        let is_call = CALLS.iter().any(|(name, _)| program.name() == *name);
        let is_uncounted = program.name() == DISK_READS.0 && !has(DISK_READS.1);
        program.set_autoload(!is_missing && !is_uncounted && !(is_call && (registers_tell || no_calls)));
    }
    let object = load::load(open)?;
    let limits = missing_text(&missing).into_iter().chain(no_calls.then(no_calls_text)).collect();
    Ok(Loaded { object, sees_uses: missing.is_empty(), limits })
}

fn no_calls_text() -> String {
    "this kernel does not report system calls (CONFIG_FTRACE_SYSCALLS): data that programs request by madvise(2) or readahead(2) and do \
     not touch is not learned"
        .to_owned()
}

fn missing_text(missing: &[&(&str, &str, &str)]) -> Vec<String> {
    let what: Vec<&str> = missing.iter().map(|(.., what)| *what).collect();
    let text = format!(
        "this kernel does not report {} (Linux 6.12 does): eke learns what entered memory, including useless read-ahead, and does not measure what it gains",
        what.join(", ")
    );
    if what.is_empty() { Vec::new() } else { vec![text] }
}

/// A test whether the kernel's BTF has a name.
fn described(root: &Root) -> Result<impl Fn(&str) -> bool, TraceError> {
    let optional = OPTIONAL.iter().map(|(_, name, _)| *name);
    let names: Vec<&str> =
        optional.chain(CALLS.map(|(_, name)| name)).chain(NEEDED).chain([REGISTERS, DISK_READS.1]).collect();
    let found = load::described(root, &names)?;
    Ok(move |name: &str| names.iter().zip(&found).any(|(n, found)| *n == name && *found))
}

#[cfg(not(target_arch = "arm"))]
const SYS_FADVISE: libc::c_long = libc::SYS_fadvise64;
/// 32-bit Arm has this one only (arm_fadvise64_64; `asm/unistd.h`).
#[cfg(target_arch = "arm")]
const SYS_FADVISE: libc::c_long = libc::SYS_arm_fadvise64_64;

/// Sets the machine's page size, because a file's end depends on it, and the system call numbers, which depend on the architecture.
fn set_constants(open: &mut OpenObject, page: PageSize, registers_tell: bool) -> Result<(), TraceError> {
    let shift = page.bytes().trailing_zeros();
    let read_calls = [libc::SYS_madvise, SYS_FADVISE, libc::SYS_readahead];
    let read_calls = read_calls.map(|number| number as u32);
    let numbers: Vec<u32> = [shift].into_iter().chain(read_calls).chain([registers_tell.into()]).collect();
    Ok(load::set_first_constants(open, &numbers, "set the constants of the BPF programs")?)
}

/// Attaches the loaded programs with these names.
pub fn attach(object: &Object, names: &[&str]) -> Result<Vec<Link>, TraceError> {
    Ok(load::attach(object, |program| names.iter().any(|name| program == *name))?)
}

impl From<load::LoadError> for TraceError {
    fn from(refused: load::LoadError) -> Self {
        Self::new(refused.tried, refused.why)
    }
}

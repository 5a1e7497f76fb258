//! From an object to programs that the kernel took.

use std::ffi::OsStr;
use std::fs::File;
use std::sync::Mutex;

use eke_linux::Root;
use libbpf_rs::{Link, Object, ObjectBuilder, OpenObject, PrintLevel};

use crate::btf;

/// Where the kernel describes itself (CONFIG_DEBUG_INFO_BTF, since Linux 5.4).
const BTF: &str = "sys/kernel/btf/vmlinux";

/// What libbpf said while it loaded: the reason of the kernel's answer. It has one place for this in a process.
static SAID: Mutex<String> = Mutex::new(String::new());
const SAID_BYTES: usize = 2048;

/// A step that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot {tried}: {why}")]
pub struct Refused {
    /// What was tried.
    pub tried: String,
    /// What the kernel, or who else, answered.
    pub why: String,
}

impl Refused {
    /// This was tried, that was answered.
    pub fn new(tried: impl Into<String>, why: impl ToString) -> Self {
        Self { tried: tried.into(), why: why.to_string() }
    }
}

/// The object of this name that the crate's build script made, aligned, for libelf reads it in place.
#[macro_export]
macro_rules! object {
    ($name:literal) => {{
        #[repr(align(8))]
        struct Aligned<T: ?Sized>(T);
        static OBJECT: &Aligned<[u8]> =
            &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o")));
        &OBJECT.0
    }};
}

/// Which of these names the kernel describes, in their order.
///
/// # Errors
/// It does not describe itself, or that cannot be read.
pub fn described(root: &Root, names: &[&str]) -> Result<Vec<bool>, Refused> {
    let path = root.path(BTF);
    let tried = || format!("read {}, by which BPF programs know the kernel", path.display());
    let file = File::open(&path).map_err(|e| Refused::new(tried(), e))?;
    btf::named(file, names).map_err(|e| Refused::new(tried(), e))
}

/// Opens an object: what it has can be set until it is loaded.
///
/// # Errors
/// It makes no sense to libbpf.
pub fn open(object: &[u8]) -> Result<OpenObject, Refused> {
    quietly(|| ObjectBuilder::default().open_memory(object), "open the BPF object")
}

/// Sets the first constants of an object, which have four bytes each; `tried` says what is told by them.
///
/// # Errors
/// It has fewer.
pub fn set_first_constants(open: &mut OpenObject, values: &[u32], tried: &str) -> Result<(), Refused> {
    let map = open.maps_mut().find(|map| map.name().as_encoded_bytes().ends_with(b".rodata"));
    let mut map = map.ok_or_else(|| Refused::new(tried, "no .rodata in the object"))?;
    let bytes = map.initial_value_mut().and_then(|bytes| bytes.get_mut(..4 * values.len()));
    let bytes = bytes.ok_or_else(|| Refused::new(tried, "its .rodata is too short"))?;
    let each = bytes.chunks_exact_mut(4).zip(values);
    each.for_each(|(place, value)| place.copy_from_slice(&value.to_ne_bytes()));
    Ok(())
}

/// Gives it to the kernel.
///
/// # Errors
/// Not permitted, or what the kernel said to which program.
pub fn load(open: OpenObject) -> Result<Object, Refused> {
    quietly(|| open.load(), "load BPF programs (it takes CAP_BPF and CAP_PERFMON, or root)")
}

/// Attaches the programs that were loaded and are `wanted`, by their names.
///
/// # Errors
/// What the kernel said to which.
pub fn attach(object: &Object, wanted: impl Fn(&OsStr) -> bool) -> Result<Vec<Link>, Refused> {
    let programs = object.progs_mut().filter(|program| wanted(program.name()) && program.autoload());
    programs
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

//! Loads an object's programs into the kernel.

use std::ffi::OsStr;
use std::fs::File;
use std::sync::Mutex;

use eke_linux::Root;
use libbpf_rs::{Link, Object, ObjectBuilder, OpenObject, PrintLevel};

use crate::btf;

/// The kernel's own BTF (CONFIG_DEBUG_INFO_BTF, since Linux 5.4).
const BTF: &str = "sys/kernel/btf/vmlinux";

/// libbpf's messages during the current step: they explain the kernel's answer. libbpf has one print callback per process.
static MESSAGES: Mutex<String> = Mutex::new(String::new());
const MESSAGES_BYTES: usize = 2048;

/// A step that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot {tried}: {why}")]
pub struct LoadError {
    /// What was attempted.
    pub tried: String,
    /// The answer of the kernel or of libbpf.
    pub why: String,
}

impl LoadError {
    /// Pairs an attempt with its answer.
    pub fn new(tried: impl Into<String>, why: impl ToString) -> Self {
        Self { tried: tried.into(), why: why.to_string() }
    }
}

/// The object that the crate's build script compiled under this name. It is aligned because libelf reads it in place.
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

/// Reports for each name, in order, whether the kernel's BTF has it.
///
/// # Errors
/// The kernel has no BTF, or it cannot be read.
pub fn described(root: &Root, names: &[&str]) -> Result<Vec<bool>, LoadError> {
    let path = root.path(BTF);
    let tried = || format!("read {}, which BPF programs need", path.display());
    let file = File::open(&path).map_err(|e| LoadError::new(tried(), e))?;
    btf::named(file, names).map_err(|e| LoadError::new(tried(), e))
}

/// Opens an object. Its constants can be set until it is loaded.
///
/// # Errors
/// libbpf cannot parse it.
pub fn open(object: &[u8]) -> Result<OpenObject, LoadError> {
    with_messages(|| ObjectBuilder::default().open_memory(object), "open the BPF object")
}

/// Sets the first constants of an object, four bytes each; `tried` describes them in an error.
///
/// # Errors
/// The object has fewer constants.
pub fn set_first_constants(open: &mut OpenObject, values: &[u32], tried: &str) -> Result<(), LoadError> {
    let map = open.maps_mut().find(|map| map.name().as_encoded_bytes().ends_with(b".rodata"));
    let mut map = map.ok_or_else(|| LoadError::new(tried, "no .rodata in the object"))?;
    let bytes = map.initial_value_mut().and_then(|bytes| bytes.get_mut(..4 * values.len()));
    let bytes = bytes.ok_or_else(|| LoadError::new(tried, "its .rodata is too short"))?;
    let each = bytes.chunks_exact_mut(4).zip(values);
    each.for_each(|(bytes, value)| bytes.copy_from_slice(&value.to_ne_bytes()));
    Ok(())
}

/// Loads the object's programs into the kernel.
///
/// # Errors
/// The process lacks a capability, or the verifier rejected a program; the error quotes libbpf.
pub fn load(open: OpenObject) -> Result<Object, LoadError> {
    with_messages(|| open.load(), "load BPF programs (it takes CAP_BPF and CAP_PERFMON, or root)")
}

/// Attaches the loaded programs whose names `is_selected` accepts.
///
/// # Errors
/// The kernel's answer, with the name of the program.
pub fn attach(object: &Object, is_selected: impl Fn(&OsStr) -> bool) -> Result<Vec<Link>, LoadError> {
    let programs = object.progs_mut().filter(|program| is_selected(program.name()) && program.autoload());
    programs
        .map(|program| {
            let tried = format!("attach the BPF program {}", program.name().to_string_lossy());
            with_messages(|| program.attach_trace(), &tried)
        })
        .collect()
}

/// Runs a step with libbpf's messages in its error instead of on standard error.
fn with_messages<T>(step: impl FnOnce() -> libbpf_rs::Result<T>, tried: &str) -> Result<T, LoadError> {
    libbpf_rs::set_print(Some((PrintLevel::Warn, collect)));
    if let Ok(mut messages) = MESSAGES.lock() {
        messages.clear();
    }
    step().map_err(|e| {
        let reason = MESSAGES.lock().map(|messages| reason(&messages)).unwrap_or_default();
        LoadError::new(tried, if reason.is_empty() { e.to_string() } else { format!("{e} ({reason})") })
    })
}

fn collect(_: PrintLevel, text: String) {
    if let Ok(mut messages) = MESSAGES.lock() {
        if messages.len() < MESSAGES_BYTES {
            messages.push_str(&text);
        }
    }
}

/// The first three messages of libbpf, without its advice on the memlock limit, which it prints on every refusal.
fn reason(messages: &str) -> String {
    let lines = messages
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("libbpf:") && !line.contains("ulimit") && !line.contains("MEMLOCK"));
    lines.take(3).collect::<Vec<_>>().join("; ")
}

//! Compiles the BPF programs, where the feature `bpf` is on.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Any host: the object is the same for all machines of one byte order.
const FLAGS: [&str; 7] = ["-target", "bpf", "-O2", "-g", "-mcpu=v3", "-Wall", "-Werror"];

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    if std::env::var_os("CARGO_FEATURE_BPF").is_none() {
        return ExitCode::SUCCESS;
    }
    match compile() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// `bpf/latency.bpf.c` to `OUT_DIR/latency.bpf.o`. The path of the source tree stays out of it, so that the same source gives the
/// same bytes.
fn compile() -> Result<(), String> {
    let var = |name: &str| std::env::var(name).map_err(|e| format!("cargo did not set {name}: {e}"));
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let source = PathBuf::from(var("CARGO_MANIFEST_DIR")?).join("bpf");
    let object = PathBuf::from(var("OUT_DIR")?).join("latency.bpf.o");
    let done = Command::new(&clang)
        .args(FLAGS)
        .arg(format!("-ffile-prefix-map={}=bpf", source.display()))
        .arg(format!("-I{}", var("DEP_BPF_INCLUDE")?))
        .arg("-c")
        .arg(source.join("latency.bpf.c"))
        .arg("-o")
        .arg(&object)
        .status();
    match done {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!(
            "{clang} could not compile bpf/latency.bpf.c ({status}); it must be clang 11 or newer"
        )),
        Err(e) => Err(format!(
            "the feature bpf needs clang to compile bpf/latency.bpf.c, and {clang} cannot be run: {e}. Install clang, name it in \
             CLANG, or build without the feature (`scripts/features` prints those that this machine can build)"
        )),
    }
}

//! Compiles the BPF programs of a crate, for its build script.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The object is the same for all machines of one byte order.
const FLAGS: [&str; 7] = ["-target", "bpf", "-O2", "-g", "-mcpu=v3", "-Wall", "-Werror"];
/// Headers that programs of several crates include.
const INCLUDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/include");

/// The whole build script of a crate: with its feature `bpf`, compiles `bpf/NAME.bpf.c` to `OUT_DIR/NAME.bpf.o`. The crate must depend on libbpf-sys,
/// which supplies libbpf's headers.
pub fn build(name: &str) -> ExitCode {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-changed={INCLUDE}");
    println!("cargo::rerun-if-env-changed=CLANG");
    if std::env::var_os("CARGO_FEATURE_BPF").is_none() {
        return ExitCode::SUCCESS;
    }
    match compile(name) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// The top of the tree, which is the compiler's directory in the object.
fn tree() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own)
}

/// Source paths stay out of the object, so that builds are reproducible.
fn compile(name: &str) -> Result<(), String> {
    let var = |name: &str| std::env::var(name).map_err(|e| format!("cargo did not set {name}: {e}"));
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let source = PathBuf::from(var("CARGO_MANIFEST_DIR")?).join("bpf");
    let done = Command::new(&clang)
        .args(FLAGS)
        // The most general first: of these, the last that fits counts.
        .arg(format!("-ffile-prefix-map={}=.", tree().display()))
        .arg(format!("-ffile-prefix-map={}=bpf", source.display()))
        .arg(format!("-ffile-prefix-map={INCLUDE}=include"))
        .arg(format!("-I{INCLUDE}"))
        .arg(format!("-I{}", var("DEP_BPF_INCLUDE")?))
        .arg("-c")
        .arg(source.join(format!("{name}.bpf.c")))
        .arg("-o")
        .arg(PathBuf::from(var("OUT_DIR")?).join(format!("{name}.bpf.o")))
        .status();
    match done {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!(
            "{clang} could not compile bpf/{name}.bpf.c ({status}); it must be clang 11 or newer"
        )),
        Err(e) => Err(format!(
            "the feature bpf needs clang to compile bpf/{name}.bpf.c, and {clang} cannot be run: {e}. Install clang, name it in \
             CLANG, or build without the feature (`scripts/features` prints those that this machine can build)"
        )),
    }
}

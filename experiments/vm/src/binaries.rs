//! Builds and checks the static binaries that run in the machine.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::{Error, Result, on};
use super::scratch::run_to_end;

const TARGET: &str = "x86_64-unknown-linux-gnu";
const INTERPRETER: u32 = 3;

/// Builds binaries of the workspace statically in release mode without link-time optimization, in `target/static`.
/// Returns their paths in the order of `bins`.
///
/// # Errors
/// [`Error::Command`] with the end of cargo's output (the target needs a static C library: Debian's libc6-dev).
pub fn build_static(workspace: &Path, bins: &[&str]) -> Result<Vec<PathBuf>> {
    let target = workspace.join("target/static");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(workspace).env_remove("CARGO_ENCODED_RUSTFLAGS");
    command.env("RUSTFLAGS", "-C target-feature=+crt-static");
    // Link-time optimization takes minutes; experiments in the machine count, and do not measure time.
    command.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    command.args(["build", "--quiet", "--release", "--target", TARGET, "--target-dir"]).arg(&target);
    for bin in bins {
        command.args(["--bin", bin]);
    }
    run_to_end(&mut command)?;
    Ok(bins.iter().map(|bin| target.join(TARGET).join("release").join(bin)).collect())
}

/// Checks that the file is an x86-64 binary that needs no dynamic linker.
///
/// # Errors
/// [`Error::NotStatic`], or [`Error::File`] if it cannot be read.
pub fn check_static(path: &Path) -> Result<()> {
    let mut head = Vec::new();
    File::open(path).and_then(|file| file.take(4096).read_to_end(&mut head)).map_err(on("read", path))?;
    match why_not_static(&head) {
        None => Ok(()),
        Some(problem) => Err(Error::NotStatic { path: path.to_path_buf(), problem }),
    }
}

fn why_not_static(head: &[u8]) -> Option<&'static str> {
    if !head.starts_with(b"\x7fELF\x02\x01") || number(head, 18, 2) != Some(62) {
        return Some("not an x86-64 ELF file");
    }
    match needs_interpreter(head) {
        None => Some("its program headers are out of place"),
        Some(true) => Some("it needs a dynamic linker"),
        Some(false) => None,
    }
}

fn needs_interpreter(head: &[u8]) -> Option<bool> {
    let (offset, size, count) = (number(head, 32, 8)?, number(head, 54, 2)?, number(head, 56, 2)?);
    for index in 0..count {
        if number(head, offset.checked_add(index * size)?, 4)? == u64::from(INTERPRETER) {
            return Some(true);
        }
    }
    Some(false)
}

/// The little-endian number of `length` bytes at `offset`.
fn number(head: &[u8], offset: u64, length: usize) -> Option<u64> {
    let start = usize::try_from(offset).ok()?;
    let bytes = head.get(start..start.checked_add(length)?)?;
    Some(bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::why_not_static;

    fn elf(segment: u8) -> Vec<u8> {
        let mut head = vec![0; 128];
        head[..6].copy_from_slice(b"\x7fELF\x02\x01");
        head[18] = 62;
        (head[32], head[54], head[56], head[64]) = (64, 56, 1, segment);
        head
    }

    #[test]
    fn a_binary_with_an_interpreter_is_not_static() {
        assert_eq!(why_not_static(&elf(1)), None);
        assert_eq!(why_not_static(&elf(3)), Some("it needs a dynamic linker"));
        assert_eq!(why_not_static(b"#!/bin/sh"), Some("not an x86-64 ELF file"));
        assert_eq!(why_not_static(&elf(1)[..60]), Some("its program headers are out of place"));
    }
}

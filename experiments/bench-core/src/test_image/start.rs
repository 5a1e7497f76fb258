//! How a program file is started, from its bytes. Pure.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use object::elf::{FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, FileKind, ReadRef};

/// The kernel reads this much of a script's first line (BINPRM_BUF_SIZE, include/uapi/linux/binfmts.h).
const FIRST_LINE: u64 = 256;

/// How a file is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// By this loader (`PT_INTERP`, elf(5)), which finds its libraries.
    Loader(PathBuf),
    /// An ELF file without a loader: a static program, or a library.
    Alone,
    /// By this interpreter. `env` finds a second one by its name.
    Script(PathBuf, Option<String>),
    /// Not a program.
    Data,
}

/// Reads as little of the file as it can.
pub fn of<'d>(file: impl ReadRef<'d>) -> Start {
    let interpreter = match FileKind::parse(file) {
        Ok(FileKind::Elf32) => interpreter::<FileHeader32<Endianness>>(file),
        Ok(FileKind::Elf64) => interpreter::<FileHeader64<Endianness>>(file),
        _ => return script(file).unwrap_or(Start::Data),
    };
    interpreter.map_or(Start::Alone, Start::Loader)
}

fn interpreter<'d, H: FileHeader<Endian = Endianness>>(file: impl ReadRef<'d>) -> Option<PathBuf> {
    let header = H::parse(file).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, file).ok()?;
    let name = segments.iter().find_map(|s| s.interpreter(endian, file).ok().flatten())?;
    Some(OsString::from_vec(name.to_vec()).into())
}

/// `#!INTERPRETER [ARGUMENT]`, execve(2).
fn script<'d>(file: impl ReadRef<'d>) -> Option<Start> {
    let head = file.read_bytes_at(0, file.len().ok()?.min(FIRST_LINE)).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?.trim();
    let (interpreter, argument) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let argument = Some(argument.trim()).filter(|a| !a.is_empty());
    Some(Start::Script(interpreter.into(), argument.map(str::to_owned))).filter(|_| !interpreter.is_empty())
}

/// Parses the output of `LOADER --list FILE` (glibc and musl): the libraries that it finds, and the names of missing ones.
pub fn libraries(output: &str) -> (Vec<PathBuf>, Vec<String>) {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for line in output.lines().map(str::trim) {
        let (name, place) = line.split_once(" => ").unwrap_or((line, line));
        let place = place.rsplit_once(" (0x").map_or(place, |(place, _)| place);
        if place == "not found" {
            missing.push(name.to_owned());
        } else if place.starts_with('/') {
            found.push(place.into());
        }
    }
    (found, missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_names_its_loader() {
        let this = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let Start::Loader(loader) = of(this.as_slice()) else { panic!("{:?}", of(this.as_slice())) };
        assert!(loader.is_absolute() && loader.exists(), "{loader:?}");
        assert!(this.len() > 4096);
        assert_eq!(of(&this[..4096.min(this.len())]), Start::Loader(loader), "its head is enough");
    }

    #[test]
    fn scripts_name_their_interpreter() {
        let script =
            |path: &str, argument: Option<&str>| Start::Script(path.into(), argument.map(Into::into));
        assert_eq!(of(b"#!/bin/sh\nexit".as_slice()), script("/bin/sh", None));
        assert_eq!(of(b"#! /usr/bin/env  python3 \n".as_slice()), script("/usr/bin/env", Some("python3")));
        for odd in [b"".as_slice(), b"#!", b"#!\n/bin/sh", b"\x7fELF", b"%PDF-1.5", b"#!\xff\xfe"] {
            assert_eq!(of(odd), Start::Data, "{odd:?}");
        }
    }

    #[test]
    fn both_loaders_answers_are_understood() {
        let glibc = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibX11.so.6 => /lib/x86_64-linux-gnu/libX11.so.6 (0x00007f)\n\
                     \tlibgone.so.1 => not found\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f5c)\n";
        let (found, lacking) = libraries(glibc);
        assert_eq!(
            found,
            ["/lib/x86_64-linux-gnu/libX11.so.6", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from)
        );
        assert_eq!(lacking, ["libgone.so.1"]);
        let musl = "\t/lib/ld-musl-x86_64.so.1 (0x7f)\n\tlibz.so.1 => /lib/libz.so.1 (0x7f)\n";
        assert_eq!(libraries(musl).0, ["/lib/ld-musl-x86_64.so.1", "/lib/libz.so.1"].map(PathBuf::from));
        assert_eq!(libraries("\tstatically linked\n"), (vec![], vec![]));
        assert_eq!(libraries("\ta => /with blank (x)/a (0x1)\n").0, [PathBuf::from("/with blank (x)/a")]);
    }
}

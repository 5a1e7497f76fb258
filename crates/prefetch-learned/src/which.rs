//! Finds the program that a text names. Pure.

use std::ffi::OsStr;
use std::path::Path;

use eke_prefetch_model::Program;

/// The programs that a text can name.
#[derive(Debug, PartialEq, Eq)]
pub enum Which<'a> {
    /// This one.
    One(&'a Program),
    /// Any of these.
    Many(Vec<&'a Program>),
    /// None; these contain the text in their names.
    None(Vec<&'a Program>),
}

/// The program whose whole name is `text`; else the only one whose own path (the script's, if it has one) ends with it; else the only one
/// whose interpreter's path does.
pub fn which<'a>(programs: &'a [Program], text: &OsStr) -> Which<'a> {
    if text.is_empty() {
        return Which::None(Vec::new());
    }
    let levels: [fn(&Program, &OsStr) -> bool; 3] = [
        |program, text| OsStr::new(&program.to_string()) == text || own(program) == text,
        |program, text| own(program).ends_with(text),
        |program, text| program.exe.ends_with(text),
    ];
    for is_meant in levels {
        let found: Vec<&Program> = programs.iter().filter(|program| is_meant(program, text)).collect();
        match found.as_slice() {
            [] => {}
            [one] => return Which::One(one),
            _ => return Which::Many(found),
        }
    }
    let part = text.to_string_lossy().to_lowercase();
    let has_part = |program: &&Program| program.to_string().to_lowercase().contains(&part);
    Which::None(programs.iter().filter(has_part).collect())
}

fn own(program: &Program) -> &Path {
    program.script.as_deref().unwrap_or(&program.exe)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn programs() -> Vec<Program> {
        let script =
            |exe: &str, script: &str| Program { script: Some(script.into()), ..Program::of_exe(exe) };
        vec![
            Program::of_exe("/usr/bin/gedit"),
            Program::of_exe("/opt/gedit/bin/gedit"),
            Program::of_exe("/usr/bin/xterm"),
            script("/usr/bin/python3.11", "/usr/bin/meld"),
            script("/usr/bin/python3.11", "/home/x/tool.py"),
            script("/usr/bin/perl", "/usr/bin/exiftool"),
            Program::of_exe(OsStr::from_bytes(b"/home/x/\xff")),
        ]
    }

    fn names(text: &[u8]) -> (char, Vec<String>) {
        let programs = programs();
        let shown = |found: Vec<&Program>| found.into_iter().map(ToString::to_string).collect();
        match which(&programs, OsStr::from_bytes(text)) {
            Which::One(one) => ('1', vec![one.to_string()]),
            Which::Many(many) => ('n', shown(many)),
            Which::None(near) => ('0', shown(near)),
        }
    }

    #[test]
    fn a_program_is_meant_by_its_path_or_a_unique_end_of_it() {
        let one = |text: &[u8]| {
            let (kind, names) = names(text);
            assert_eq!(kind, '1', "{names:?}");
            names[0].clone()
        };
        assert_eq!(one(b"xterm"), "/usr/bin/xterm");
        assert_eq!(one(b"/usr/bin/gedit"), "/usr/bin/gedit");
        assert_eq!(one(b"gedit/bin/gedit"), "/opt/gedit/bin/gedit");
        assert_eq!(one(b"meld"), "/usr/bin/python3.11 /usr/bin/meld");
        assert_eq!(one(b"/usr/bin/python3.11 /usr/bin/meld"), "/usr/bin/python3.11 /usr/bin/meld");
        assert_eq!(one(b"perl"), "/usr/bin/perl /usr/bin/exiftool");
        assert_eq!(one(b"\xff"), "/home/x/\\xff");
    }

    #[test]
    fn what_is_not_unique_or_not_there_comes_with_candidates() {
        assert_eq!(names(b"gedit"), ('n', vec!["/usr/bin/gedit".into(), "/opt/gedit/bin/gedit".into()]));
        assert_eq!(names(b"python3.11").1.len(), 2);
        assert_eq!(names(b"TERM"), ('0', vec!["/usr/bin/xterm".into()]));
        assert_eq!(names(b"firefox"), ('0', vec![]));
        assert_eq!(names(b""), ('0', vec![]));
    }
}

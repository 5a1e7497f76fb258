//! Who started whom: whether an exec is a start of its own. Pure.
//!
//! All processes of a recorded launch run its program. A process that executes another program leaves the launch and is a start of its own, whether
//! it was the launch's first process (`env`, `nice`, a script that ends with `exec`) or a child (`timeout`, `sh -c`, `sudo`, `bwrap`). So a chain of
//! execs in one process is one start, named by its last executable, and a wrapper has only the pages that it touches itself.

use super::event::LaunchId;
use crate::program::Program;

/// What an exec is to the recorded launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lineage {
    /// Its process belongs to no recorded launch: a start.
    Apart,
    /// It is a part of this launch: its program again, such as a browser's tab.
    Part(LaunchId),
    /// It leaves this launch, with another program: a start.
    Leaves(LaunchId),
}

/// The lineage of an exec of `program` in a process of the launch `within`.
pub fn lineage(program: Option<&Program>, within: Option<(LaunchId, &Program)>) -> Lineage {
    match within {
        None => Lineage::Apart,
        Some((launch, of)) if program.is_some_and(|program| is_part(of, program)) => Lineage::Part(launch),
        Some((launch, _)) => Lineage::Leaves(launch),
    }
}

/// The same executable is the same program, unless it is an interpreter with another script.
fn is_part(of: &Program, program: &Program) -> bool {
    of.exe == program.exe && (program.script.is_none() || program.script == of.script)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(text: &str) -> Program {
        let (exe, script) = text.split_once(' ').map_or((text, None), |(exe, script)| (exe, Some(script)));
        Program { exe: exe.into(), script: script.map(Into::into) }
    }

    #[test]
    fn another_executable_or_script_is_a_start_of_its_own() {
        let launch = LaunchId(3);
        let table = [
            ("/usr/bin/env", "/usr/bin/gedit", Lineage::Leaves(launch)),
            ("/usr/lib/chromium/chromium", "/usr/lib/chromium/chromium", Lineage::Part(launch)),
            ("/usr/bin/python3 /usr/bin/meld", "/usr/bin/python3", Lineage::Part(launch)),
            ("/usr/bin/python3 /usr/bin/meld", "/usr/bin/python3 /usr/bin/meld", Lineage::Part(launch)),
            ("/usr/bin/python3 /usr/bin/meld", "/usr/bin/python3 /usr/bin/other", Lineage::Leaves(launch)),
            (
                "/usr/bin/dash /usr/bin/firefox-esr",
                "/usr/lib/firefox-esr/firefox-esr",
                Lineage::Leaves(launch),
            ),
            ("/usr/bin/python3", "/usr/bin/python3 /usr/bin/meld", Lineage::Leaves(launch)),
        ];
        for (of, new, expected) in table {
            let (of, new) = (program(of), program(new));
            assert_eq!(lineage(Some(&new), Some((launch, &of))), expected, "{of} {new}");
            assert_eq!(lineage(Some(&new), None), Lineage::Apart);
        }
        let of = program("/usr/bin/bwrap");
        assert_eq!(lineage(None, Some((launch, &of))), Lineage::Leaves(launch), "a program without a path");
    }
}

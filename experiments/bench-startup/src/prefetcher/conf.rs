//! preload's configuration and state, as text. Pure.

use std::path::Path;

/// The smallest program that preload learns, in bytes of its maps. The default is 2,000,000. All programs of the experiment exceed that,
/// but the predecessor, a single small file, must count too.
const LEAST: u32 = 1;

/// A configuration (preload.conf of 0.6.4) for the programs of a tree mounted at `tree`, and for `predecessor`. Its prefixes are the
/// default ones, below the tree, and nothing else of the machine. All other values except the cycle and [`LEAST`] are defaults. The
/// shipped file sets `processes`, which 0.6.4 never reads (it reads `maxprocs`), so the built-in default of 30 applies.
pub fn configuration(tree: &Path, predecessor: &Path, cycle_s: u64) -> String {
    let (tree, predecessor) = (tree.display(), predecessor.display());
    format!(
        "[model]\n\
         cycle = {cycle_s}\n\
         usecorrelation = true\n\
         minsize = {LEAST}\n\
         memtotal = -10\n\
         memfree = 50\n\
         memcached = 0\n\
         \n\
         [system]\n\
         doscan = true\n\
         dopredict = true\n\
         autosave = 3600\n\
         mapprefix = {tree}/usr/;{tree}/lib;{tree}/var/cache/;{predecessor};!/\n\
         exeprefix = !{tree}/usr/sbin/;!{tree}/usr/local/sbin/;{tree}/usr/;{predecessor};!/\n\
         processes = 30\n\
         sortstrategy = 3\n"
    )
}

/// The executables in a state: their number, and the maps of one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Known {
    /// The number of executables.
    pub executables: usize,
    /// The number of maps of the given executable; `None` if it is not in the state.
    pub maps: Option<usize>,
}

/// Reads a state (`src/state.c` of 0.6.4): `EXE seq update_time time expansion uri`, `EXEMAP exe map prob`, separated by tabs; paths are
/// `file://` URIs.
pub fn known(state: &str, executable: &Path) -> Known {
    let uri = format!("file://{}", executable.display());
    let records = || state.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let executables: Vec<_> = records().filter(|f| f.first() == Some(&"EXE")).collect();
    let seq = executables.iter().find(|f| f.last() == Some(&uri.as_str())).and_then(|f| f.get(1).copied());
    let maps =
        seq.map(|seq| records().filter(|f| f.first() == Some(&"EXEMAP") && f.get(1) == Some(&seq)).count());
    Known { executables: executables.len(), maps }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_in_the_tree_is_watched_and_read() {
        let text = configuration(Path::new("/run/t"), Path::new("/run/c/sleep"), 2);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_state_says_whom_it_knows() {
        let state = "PRELOAD\t0.6.4\t100\nMAP\t1\t0\t0\t4096\t-1\tfile:///t/lib/a\nEXE\t7\t90\t40\t-1\tfile:///t/usr/bin/gedit\n\
                     EXE\t8\t90\t40\t-1\tfile:///c/sleep\nEXEMAP\t7\t1\t1\nEXEMAP\t8\t1\t1\nMARKOV\t7\t8\t0\n";
        assert_eq!(known(state, Path::new("/t/usr/bin/gedit")), Known { executables: 2, maps: Some(1) });
        assert_eq!(known(state, Path::new("/usr/bin/gedit")).maps, None);
        assert_eq!(known("", Path::new("/a")), Known::default());
    }
}

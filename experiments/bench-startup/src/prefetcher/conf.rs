//! preload's configuration and state, as text. Pure.

use std::path::Path;

/// The smallest program that preload learns, in bytes of its maps. As shipped it is 2,000,000, which all programs of the experiment
/// exceed; the predecessor, a single small file, must count too.
const LEAST: u32 = 1;

/// A configuration (preload.conf of 0.6.4) for programs of a tree that is mounted at `tree`, and one more at `predecessor`. What it may
/// watch and read are the prefixes that it is shipped with, below the tree, and nothing of the rest of the machine; everything else but
/// the cycle and [`LEAST`] is as shipped. The shipped file writes `processes`, which 0.6.4 never reads (it reads `maxprocs`), so its own
/// default of 30 holds.
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

/// What a state says of the executables: how many there are, and of one whether it is among them and how many maps it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Known {
    /// How many executables.
    pub executables: usize,
    /// How many maps the one that was asked for has; `None` if it is not known.
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

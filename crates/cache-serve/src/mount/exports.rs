//! What the kernel's NFS server exports: no process has its clients' files open, so nothing else shows that they use a mount.
//!
//! Its clients name a file by its number. FUSE finds the file of a number only while the kernel has its inode (`fuse_get_dentry` in
//! fs/fuse/inode.c): afterwards they get ESTALE.
//!
//! The kernel's own list has what its clients have asked for since the server started; the table of exportfs(8) has all that they may.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use eke_linux::Root;
use eke_linux::parse::escape::unescape;

/// Both have a line for each directory and client: `PATH CLIENT(OPTION,OPTION…)`. The table may be there without a server: the next one
/// reads it.
const LISTS: [&str; 2] = ["proc/fs/nfs/exports", "var/lib/nfs/etab"];

/// An exported directory.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Export {
    path: PathBuf,
    /// Clients get into the mounts below it, too.
    crosses: bool,
}

/// The exported directory by which clients get at files below `place`, if there is one.
pub(crate) fn export_of(root: &Root, place: &Path) -> Option<PathBuf> {
    let texts = LISTS.iter().filter_map(|list| std::fs::read(root.path(list)).ok());
    let exports = texts.flat_map(|text| parse(&text));
    exports.into_iter().find(|export| export.leads_to(place)).map(|export| export.path)
}

impl Export {
    fn leads_to(&self, place: &Path) -> bool {
        self.path.starts_with(place) || self.crosses && place.starts_with(&self.path)
    }
}

/// Comments and lines of another form are left out.
fn parse(text: &[u8]) -> Vec<Export> {
    text.split(|byte| *byte == b'\n').filter_map(line).collect()
}

fn line(line: &[u8]) -> Option<Export> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let path = words.next().filter(|path| path.starts_with(b"/"))?;
    let client = String::from_utf8_lossy(words.next()?);
    let options = client.split_once('(').map_or("", |(_, options)| options);
    let crosses = options.trim_end_matches(')').split(',').any(|option| option == "crossmnt");
    Some(Export { path: OsString::from_vec(unescape(path)).into(), crosses })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_below_the_place_count_and_those_above_if_clients_cross_mounts() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let of = |place: &str| export_of(&root, Path::new(place));
        assert_eq!(of("/srv"), None, "no server");
        let kernels = "# Version 1.1\n# Path Client(Flags) # IPs\n/srv/a\\040b\t*(rw,root_squash,sync)\n";
        eke_testkit::tree::put(dir.path(), "proc/fs/nfs/exports", kernels);
        let table = "/home\t10.0.0.0/8(rw,sync,nocrossmnt,secure)\n/all\t*(ro,crossmnt,sec=sys)\n/x\n";
        eke_testkit::tree::put(dir.path(), "var/lib/nfs/etab", table);
        let expected = ["/srv", "/srv/a b", "/home", "/all/of/it", "/all"].map(of);
        assert_eq!(expected, ["/srv/a b", "/srv/a b", "/home", "/all", "/all"].map(|path| Some(path.into())));
        for place in ["/srv/a", "/home/user", "/srv/a b/c", "/x", "/allx"] {
            assert_eq!(of(place), None, "{place}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_never_panics(bytes in proptest::collection::vec(0u8.., 0..100)) {
            let _ = parse(&bytes);
        }
    }
}

//! Directories that mounts show at two places of the served tree. Pure.
//!
//! A directory has one inode, whatever mount it is reached by, and the kernel knows that at one place: a lookup at another one moves it
//! there, with all programs that work in it (`d_splice_alias` in fs/dcache.c). Their `..` then leads to the other place, also out of a
//! chroot. So of the mounts that show a directory only the first is served. The served directory's own mount comes before all others.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::num::NonZeroU32;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use eke_linux::parse::mountinfo::Mount;

/// What a mount shows at its place, by a number that is not used again, as those of mounts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct View(NonZeroU32);

impl View {
    /// That of the served directory's own mount.
    pub const HOME: Self = Self(NonZeroU32::MIN);

    /// Another one.
    pub fn next(self) -> Self {
        Self(self.0.checked_add(1).unwrap_or(NonZeroU32::MAX))
    }
}

impl Default for View {
    fn default() -> Self {
        Self::HOME
    }
}

/// The served tree: the directory, and the mounts inside.
pub(super) struct Tree<'a> {
    /// The directory's own mount.
    pub home: &'a Mount,
    /// The directory's path.
    pub dir: &'a Path,
    /// The mounts inside, in the order of mounting.
    pub inside: Vec<&'a Mount>,
}

/// The part of a file system that is shown at a place.
struct Shown<'a> {
    mount: &'a Mount,
    top: PathBuf,
    place: &'a Path,
}

impl Tree<'_> {
    /// The mounts whose directory, or a part of it, shows at another place, too, and that place. Only those count that are served
    /// otherwise, and that nothing covers.
    pub fn second_views(&self, is_served: impl Fn(&Mount) -> bool) -> HashMap<u64, PathBuf> {
        let (mut first, mut second) = (Vec::from_iter(self.itself()), HashMap::new());
        for mount in &self.inside {
            if self.on_top(&mount.place) != mount.id || !is_served(mount) {
                continue;
            }
            let shown = Shown { mount, top: top(mount), place: &mount.place };
            match first.iter().find_map(|first| self.place_of_both(first, &shown)) {
                Some(place) => drop(second.insert(mount.id, place)),
                None => first.push(shown),
            }
        }
        second
    }

    fn itself(&self) -> Option<Shown<'_>> {
        let inside = self.dir.strip_prefix(&self.home.place).ok()?;
        Some(Shown { mount: self.home, top: joined(&top(self.home), inside), place: self.dir })
    }

    /// Where the first one shows a directory that the second one shows, too. What other mounts cover is not seen.
    fn place_of_both(&self, first: &Shown<'_>, second: &Shown<'_>) -> Option<PathBuf> {
        if first.mount.device != second.mount.device {
            return None;
        }
        if let Ok(rest) = second.top.strip_prefix(&first.top) {
            let place = joined(first.place, rest);
            return (self.on_top(&place) == first.mount.id).then_some(place);
        }
        let rest = first.top.strip_prefix(&second.top).ok()?;
        let is_seen = self.on_top(&joined(second.place, rest)) == second.mount.id;
        is_seen.then(|| first.place.to_owned())
    }

    /// The mount that a path leads to.
    fn on_top(&self, path: &Path) -> u64 {
        let mut at = self.home.id;
        // No more steps than mounts, however they are listed.
        for _ in &self.inside {
            let over = self.inside.iter().filter(|m| m.parent == at && path.starts_with(&m.place));
            match over.min_by_key(|m| m.place.as_os_str().len()) {
                Some(next) => at = next.id,
                None => break,
            }
        }
        at
    }
}

/// A path joined with an empty one would end with a slash.
fn joined(path: &Path, rest: &Path) -> PathBuf {
    path.components().chain(rest.components()).collect()
}

/// The directory of its file system that a mount shows. Of NFS the kernel lists the export alone (`nfs_show_path` in fs/nfs/super.c).
fn top(mount: &Mount) -> PathBuf {
    if !is_nfs(mount) {
        return mount.top.clone();
    }
    let source = mount.source.as_os_str().as_bytes();
    let export = source.windows(2).position(|pair| pair == b":/").map_or(&b"/"[..], |at| &source[at + 1..]);
    OsStr::from_bytes(export).into()
}

/// True for NFS of any version.
pub(super) fn is_nfs(mount: &Mount) -> bool {
    matches!(mount.kind.as_str(), "nfs" | "nfs4")
}

#[cfg(test)]
mod tests {
    use eke_linux::parse::mountinfo::parse;

    use super::*;

    /// The second views among these mounts of the tree /d, which is on mount 1: each with the place of the first one.
    fn second(mounts: &str) -> Vec<(u64, String)> {
        second_of("1 0 8:0 / / rw - ext4 a rw\n", mounts)
    }

    fn second_of(home: &str, mounts: &str) -> Vec<(u64, String)> {
        let (home, mounts) = (parse(home.as_bytes()), parse(mounts.as_bytes()));
        let tree = Tree { home: &home[0], dir: Path::new("/d"), inside: mounts.iter().collect() };
        let found = tree.second_views(|mount| mount.flags != "strict");
        let mut found: Vec<_> =
            found.into_iter().map(|(id, place)| (id, place.display().to_string())).collect();
        found.sort();
        found
    }

    fn is_second(mounts: &str, id: u64, place: &str) {
        assert_eq!(second(mounts), [(id, place.to_owned())], "{mounts}");
    }

    #[test]
    fn a_part_of_the_directory_is_served_where_it_lies() {
        is_second("2 1 8:0 /d/pub /d/u1/pub rw - ext4 a rw\n", 2, "/d/pub");
        is_second("2 1 8:0 /d /d/itself rw - ext4 a rw\n", 2, "/d");
        is_second("2 1 8:0 / /d/above rw - ext4 a rw\n", 2, "/d");
        let subvolume = "1 0 0:30 /@ / rw - btrfs a rw\n";
        assert_eq!(second_of(subvolume, "2 1 0:30 /@/d/x /d/y rw - btrfs a rw\n").len(), 1);
        assert_eq!(second_of(subvolume, "2 1 0:30 /@other /d/y rw - btrfs a rw\n"), []);
    }

    #[test]
    fn what_lies_outside_is_served_at_the_first_place() {
        let once = "2 1 8:0 /opt/pub /d/u1/pub rw - ext4 a rw\n";
        assert_eq!(second(once), []);
        is_second(&format!("{once}3 1 8:0 /opt/pub /d/u2/pub rw - ext4 a rw\n"), 3, "/d/u1/pub");
        is_second(&format!("{once}3 1 8:0 /opt/pub/in /d/u2/in rw - ext4 a rw\n"), 3, "/d/u1/pub/in");
        is_second(&format!("{once}3 1 8:0 /opt /d/u2/all rw - ext4 a rw\n"), 3, "/d/u1/pub");
        assert_eq!(second(&format!("{once}3 1 8:0 /opt/public /d/u2/pub rw - ext4 a rw\n")), []);
        assert_eq!(second(&format!("{once}3 1 8:1 /opt/pub /d/u2/pub rw - ext4 b rw\n")), []);
        // A number below that of the first one says nothing.
        is_second("9 1 8:1 / /d/a rw - ext4 b rw\n2 1 8:1 / /d/b rw - ext4 b rw\n", 2, "/d/a");
    }

    #[test]
    fn what_is_covered_or_not_served_is_no_view() {
        let (itself, strict) = ("2 1 8:0 /d/x /d/x rw - ext4 a rw\n", "2 1 8:1 / /d/a strict - ext4 b rw\n");
        assert_eq!(second(itself), [], "mounted on itself");
        assert_eq!(second("2 1 8:0 /d/x/in /d/x rw - ext4 a rw\n"), [], "it covers what it shows");
        assert_eq!(second(&format!("{strict}3 1 8:1 / /d/b rw - ext4 b rw\n")), []);
        assert_eq!(
            second("2 1 8:1 / /d/a rw - ext4 b rw\n3 2 8:1 / /d/a rw - ext4 b rw\n"),
            [],
            "mounted twice"
        );
        let covered = "2 1 8:1 / /d/a rw - ext4 b rw\n3 2 8:2 / /d/a/in rw - tmpfs t rw\n4 1 8:1 /in /d/b rw - ext4 b rw\n";
        assert_eq!(second(covered), []);
        is_second(&covered.replace("/d/a/in rw", "/d/a/i rw"), 4, "/d/a/in");
    }

    #[test]
    fn exports_of_nfs_are_told_apart_by_their_source() {
        let two = "2 1 0:9 / /d/a rw - nfs4 [fe80::1]:/export/a rw\n3 1 0:9 / /d/b rw - nfs4 [fe80::1]:/export/b rw\n";
        assert_eq!(second(two), []);
        is_second(&two.replace("/export/b", "/export/a/in"), 3, "/d/a/in");
    }

    proptest::proptest! {
        #[test]
        fn any_list_has_an_answer(mounts in proptest::collection::vec((0..6_u64, 0..6_u64, 0..4_usize, 0..4_usize), 0..8)) {
            let places = ["/", "/d", "/d/a", "/d/a/b"];
            let lines: String = mounts.iter().map(|(id, parent, top, place)| {
                format!("{id} {parent} 8:0 {} {} rw - ext4 a rw\n", places[*top], places[*place])
            }).collect();
            let found = second(&lines);
            proptest::prop_assert!(found.len() <= mounts.len());
        }
    }
}

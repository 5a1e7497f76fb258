//! Compares file stamps.

use std::path::Path;

use eke_prefetch_model::file_set::{Kind, Stamp, is_same_file, is_same_file_system};

/// Whether the stamp `now` shows another file at `path` than the stamp `known`. Device numbers are compared only if both are known (not 0), because they change
/// across boots.
pub fn changed(path: &Path, kind: Kind, known: &Stamp, now: &Stamp) -> bool {
    let other_device = known.dev != now.dev && known.dev != 0 && now.dev != 0;
    let is_same = match kind {
        Kind::Device => is_same_file_system(known, now),
        Kind::File | Kind::Directory => is_same_file(path, known, now),
    };
    other_device || !is_same
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_inode_size_and_time_and_within_a_boot_by_device() {
        let changed = |known: &Stamp, now: &Stamp| changed(Path::new("/usr/lib/x"), Kind::File, known, now);
        let known = Stamp { dev: 0xfd01, ino: 12, size: 4096, mtime_ns: 17 };
        assert!(!changed(&known, &known));
        for now in [
            Stamp { ino: 13, ..known },
            Stamp { size: 4097, ..known },
            Stamp { mtime_ns: 18, ..known },
            Stamp { dev: 0xfd02, ..known },
        ] {
            assert!(changed(&known, &now) && changed(&now, &known), "{now:?}");
        }
        let of_another_boot = Stamp { dev: 0, ..known };
        assert!(!changed(&of_another_boot, &known) && !changed(&known, &of_another_boot));
        assert!(changed(&of_another_boot, &Stamp { ino: 13, ..known }));
    }

    #[test]
    fn a_device_is_known_by_its_file_system() {
        let of = |dev, ino| Stamp { dev, ino, ..Stamp::default() };
        let changed = |known: Stamp, now: Stamp| changed(Path::new("/dev/sda1"), Kind::Device, &known, &now);
        assert!(changed(of(0, 7), of(0x801, 8)) && changed(of(0x801, 7), of(0x802, 7)));
        assert!(!changed(of(0, 7), of(0x801, 7)));
        assert!(!changed(of(0, 0), of(0x801, 7)), "an earlier eke did not store it");
    }
}

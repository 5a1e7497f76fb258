//! Compares file stamps.

use std::path::Path;

use eke_prefetch_model::file_set::{Stamp, is_same_file};

/// Whether the stamp `now` shows another file at `path` than the stamp `known`. Device numbers are compared only if both are known (not 0), because they change
/// across boots.
pub fn changed(path: &Path, known: &Stamp, now: &Stamp) -> bool {
    let other_device = known.dev != now.dev && known.dev != 0 && now.dev != 0;
    other_device || !is_same_file(path, known, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_inode_size_and_time_and_within_a_boot_by_device() {
        let changed = |known: &Stamp, now: &Stamp| changed(Path::new("/usr/lib/x"), known, now);
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
}

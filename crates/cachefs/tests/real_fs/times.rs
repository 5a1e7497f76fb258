//! Times that users set.

use std::fs;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

use super::mounted::each;

/// File systems clamp times that they cannot store, and so does the backing one: the mount must show the same, and continue.
#[test]
fn the_earliest_and_the_latest_time_come_as_they_were_set() {
    each("times", |m| {
        let both = [m.at("file"), m.backing("other")];
        both.iter().for_each(|path| fs::write(path, "x").unwrap());
        let ends = [i64::MIN, i64::MIN + 1, -1, 0, i64::from(u32::MAX), i64::MAX - 1, i64::MAX];
        for (seconds, nanos) in
            ends.into_iter().flat_map(|seconds| [(seconds, 0), (seconds, 1), (seconds, 999_999_999)])
        {
            let time = Timespec { tv_sec: seconds, tv_nsec: nanos };
            let times = Timestamps { last_access: time, last_modification: time };
            let set = both.each_ref().map(|path| utimensat(CWD, path, &times, AtFlags::empty()));
            assert_eq!(set[0], set[1], "{seconds} {nanos}");
            let seen = [m.at("file"), m.backing("file"), m.backing("other")].map(|path| {
                let metadata = fs::metadata(path).unwrap();
                (metadata.mtime(), metadata.mtime_nsec(), metadata.atime())
            });
            assert_eq!(seen, [seen[2]; 3], "{seconds} {nanos}");
        }
    });
}

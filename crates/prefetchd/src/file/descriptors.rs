//! How many descriptors this process may use.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Enough for the launches of a log-in, each with hundreds of files; all in use take a few megabytes of the kernel's memory.
const NEEDED: u64 = 8192;
/// The most open files of a device that is read.
const MOST_OF_DEVICE: u64 = 512;
/// Of this many devices that are read at once, each may keep its share open: five fetches, some with files of several disks.
const DEVICES: u64 = 16;

/// Raises the limit, which is 1024 by default, as far as the process may.
pub fn raise() {
    // Without permission it stays, and fewer files are open at once.
    let _ = setrlimit(Resource::Nofile, raised(getrlimit(Resource::Nofile)));
}

fn raised(limit: Rlimit) -> Rlimit {
    let possible = limit.maximum.map_or(NEEDED, |hard| hard.min(NEEDED));
    Rlimit { current: limit.current.map(|soft| soft.max(possible)), ..limit }
}

/// The most files that may be open for one device that is read.
pub(crate) fn of_device() -> usize {
    share(getrlimit(Resource::Nofile).current)
}

fn share(limit: Option<u64>) -> usize {
    limit.map_or(MOST_OF_DEVICE, |limit| (limit / DEVICES).clamp(1, MOST_OF_DEVICE)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_and_never_lowered() {
        let limit = |current, maximum| Rlimit { current, maximum };
        let table = [
            (limit(Some(1024), Some(524_288)), Some(8192)),
            (limit(Some(1024), Some(4096)), Some(4096)),
            (limit(Some(1024), None), Some(8192)),
            (limit(Some(65_536), Some(524_288)), Some(65_536)),
            (limit(None, None), None),
        ];
        for (before, expected) in table {
            assert_eq!(raised(before), Rlimit { current: expected, ..before }, "{before:?}");
        }
    }

    #[test]
    fn a_devices_files_leave_descriptors_to_others() {
        assert_eq!([Some(1024), Some(8192), Some(4), None].map(share), [64, 512, 1, 512]);
    }
}

//! Control groups (v1 and v2): their limits, and which ones a process is in.

use eke_model::units::PageSize;

/// Parses a limit. `None` for `max`, and for cgroup v1's "no limit": the largest multiple of the page size below 2^63.
pub fn limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|n| *n < PageSize::LARGEST.begin(i64::MAX as u64))
}

/// The process's group in the cgroup v1 hierarchy of `controller`, or with `""` in the unified one. Parses the lines
/// `ID:CONTROLLERS:PATH` of `/proc/PID/cgroup` (cgroups(7)).
pub fn own<'a>(text: &'a str, controller: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|c| c == controller).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_that_of_the_controller() {
        let text = "5:cpu,memory:/a:b\n4:name=systemd:/x\n0::/y\n";
        assert_eq!(own(text, "memory"), Some("/a:b"));
        assert_eq!(own(text, ""), Some("/y"));
        assert_eq!((own(text, "pids"), own("nonsense", "")), (None, None));
    }

    #[test]
    fn reads_limits() {
        assert_eq!(limit("max\n"), None);
        // no limit on cgroup v1, with pages of 4, 16 and 64 KiB
        for text in ["9223372036854771712\n", "9223372036854759424\n", "9223372036854710272\n"] {
            assert_eq!(limit(text), None, "{text}");
        }
        assert_eq!(limit("167772160\n"), Some(167_772_160));
    }
}

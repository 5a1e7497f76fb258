//! Lines of a name and a value, a format of many kernel files.

/// The count in the line `NAME COUNT`: `/proc/vmstat`, `memory.stat`, `memory.events`.
pub fn count(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?.trim().parse().ok()
}

/// The value in the line `NAME: VALUE`: `/proc/PID/status`, `/proc/PID/io`, `/proc/PID/fdinfo/FD`, `/proc/meminfo`.
pub fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_matches_only_as_a_whole() {
        assert_eq!(count("cache 1\nswap 8192\nswapcached 3\n", "swap"), Some(8192));
        assert_eq!((count("swapcached 3\n", "swap"), count("swap x\n", "swap")), (None, None));
        assert_eq!(value("VmRSS:\t  12 kB\nVm: 3\n", "Vm"), Some("3"));
        assert_eq!(value("Name:\tx\n", "Vm"), None);
    }
}

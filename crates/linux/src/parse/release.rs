//! `/proc/sys/kernel/osrelease`, which uname(2) reports too.

/// 6 and 18 of `6.18.44-cloud-amd64`. `None`: it cannot be read, and the caller decides whether that counts as new.
pub fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_the_first_two_numbers() {
        for (release, expected) in [
            ("6.18.44-cloud-amd64\n", (6, 18)),
            ("6.18.44-fc-v509", (6, 18)),
            ("5.10-rc1", (5, 10)),
            ("5.15", (5, 15)),
            ("10.0.0", (10, 0)),
        ] {
            assert_eq!(version(release), Some(expected), "{release}");
        }
        for unreadable in ["", "x", "6", "6.", ".1", "99999999999.1"] {
            assert_eq!(version(unreadable), None, "{unreadable}");
        }
    }
}

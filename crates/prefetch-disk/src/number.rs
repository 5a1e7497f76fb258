//! Device numbers as `/proc` and `/sys` write them.

use rustix::fs::{major, makedev, minor};

/// Parses `MAJOR:MINOR` to a number as in `st_dev`; `None` for other text.
pub fn parse(text: &str) -> Option<u64> {
    let (major, minor) = text.trim().split_once(':')?;
    Some(makedev(major.parse().ok()?, minor.parse().ok()?))
}

/// Formats a number as `MAJOR:MINOR`.
pub fn text(number: u64) -> String {
    format!("{}:{}", major(number), minor(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_back_as_they_are_written() {
        for (text_of, number) in
            [("8:1", makedev(8, 1)), ("259:65536", makedev(259, 65536)), ("0:45", makedev(0, 45))]
        {
            assert_eq!(parse(text_of), Some(number));
            assert_eq!(text(number), text_of);
        }
        assert_eq!(parse("8:1\n"), Some(makedev(8, 1)));
        for wrong in ["", "8", "8:", ":1", "a:b", "8:1:2", "99999999999:1"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}

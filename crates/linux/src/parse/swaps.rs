//! `/proc/swaps`: a header, then path, kind, size and used in KiB, priority.

use eke_model::sample::SwapArea;
use eke_model::units::Bytes;

use super::escape::unescape;

/// The areas in the kernel's order, without their devices ([`crate::areas`] finds those). A blank in a path is written
/// as `\040`; a deleted file's path ends in ` (deleted)`.
pub fn parse(text: &str) -> Vec<SwapArea> {
    text.lines().skip(1).filter_map(line).collect()
}

fn line(line: &str) -> Option<SwapArea> {
    let mut from_right = line.split_whitespace().rev();
    let priority = from_right.next()?.parse().ok()?;
    let used: u64 = from_right.next()?.parse().ok()?;
    let size: u64 = from_right.next()?.parse().ok()?;
    let kind = from_right.next()?.to_owned();
    let path = unescape(line.split_whitespace().next()?.as_bytes());
    Some(SwapArea {
        path: String::from_utf8_lossy(&path).into_owned(),
        device: None,
        kind,
        size: Bytes(size.saturating_mul(1024)),
        used: Bytes(used.saturating_mul(1024)),
        priority,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/zram1                              partition\t65532\t\t8\t\t100\n/var/my\\040swap                         file\t\t1024\t\t0\t\t-2\n";

    #[test]
    fn reads_devices_and_files_with_blanks() {
        let areas = parse(TEXT);
        assert_eq!(areas.len(), 2);
        assert_eq!(
            (areas[0].path.as_str(), areas[0].used, areas[0].priority),
            ("/dev/zram1", Bytes(8192), 100)
        );
        assert_eq!((areas[1].path.as_str(), areas[1].kind.as_str()), ("/var/my swap", "file"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_areas(text in "(?s).{0,200}") {
            let _ = parse(&text);
        }
    }
}

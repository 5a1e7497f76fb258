//! Does the governor pay on this machine at all? Pure. It acts on a disk only while reads wait there.

use eke_model::step::Reason;
use eke_model::units::{Bytes, Nanos};

/// Disks that answer sooner have so many requests a second that writers do not fill them. A card of 2000 requests a second takes 0.5 ms.
const LEAST_READ: Nanos = Nanos(400_000);
/// With less RAM its process of some MiB is missed elsewhere.
const LEAST_RAM: Bytes = Bytes::mib(256);

/// Whether the governor runs unless the user says otherwise, and why: by the median random read of the disk with the programs, if they are on one, whether home
/// directories are on another disk, which rotates, and RAM.
pub fn pays(file_read: Option<Nanos>, homes_rotate: bool, ram: Bytes) -> (bool, Reason) {
    if ram < LEAST_RAM {
        let text = format!("{ram} of RAM are too few for another process");
        return (false, Reason::new(text).with("ram_bytes", ram.0 as f64));
    }
    if homes_rotate {
        return (true, Reason::new("home directories are on a rotating disk"));
    }
    let Some(read) = file_read else {
        return (false, Reason::new("no disk with the programs was measured"));
    };
    let text = format!(
        "a random read of the disk with the programs takes {read}; the governor starts at {LEAST_READ}"
    );
    (read >= LEAST_READ, Reason::new(text).with("file_read_ns", read.0 as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_pays_where_reads_are_slow() {
        let is_on = |us: u64, homes, mib| pays(Some(Nanos(us * 1_000)), homes, Bytes::mib(mib)).0;
        // a rotating disk, an SD card; a SATA SSD, an NVMe disk
        assert_eq!([9_000, 500, 120, 70].map(|us| is_on(us, false, 1024)), [true, true, false, false]);
        assert!(is_on(70, true, 1024) && !is_on(9_000, true, 124));
        assert!(!pays(None, false, Bytes::mib(1024)).0, "not measured");
    }

    #[test]
    fn the_reason_has_the_numbers() {
        let (_, reason) = pays(Some(Nanos(9_000_000)), false, Bytes::mib(1024));
        assert_eq!(
            reason.text,
            "a random read of the disk with the programs takes 9.00 ms; the governor starts at 400 µs"
        );
    }
}

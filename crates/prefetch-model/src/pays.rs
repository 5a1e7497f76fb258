//! Does prefetch pay on this machine at all? Pure. eke decides for each program again, by the measured costs of its own files.

use eke_model::step::Reason;
use eke_model::units::{Bytes, Nanos};

/// Requests of a usual launch from a cold disk: a program with a window makes 200 to 1500 (docs/results/startup.json).
const REQUESTS: u64 = 250;
/// A shorter wait is hardly noticed.
const LEAST_WAIT: Nanos = Nanos(150_000_000);
/// With less RAM the daemon's own 8 MiB and what it reads are missed elsewhere.
const LEAST_RAM: Bytes = Bytes::mib(256);

/// The machine, as far as it decides.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    /// The median random read of the disk with the programs; `None` if it was not measured.
    pub file_read: Option<Nanos>,
    /// The home directories are on another disk, which rotates.
    pub homes_rotate: bool,
    /// RAM.
    pub ram: Bytes,
    /// Another program that does the same.
    pub other: Option<&'a str>,
}

/// Whether prefetch runs unless the user says otherwise, and why.
pub fn pays(given: Given<'_>) -> (bool, Reason) {
    if let Some(name) = given.other {
        return (false, Reason::new(format!("{name} reads files of programs ahead already")));
    }
    if given.ram < LEAST_RAM {
        let text = format!("{} of RAM are too few to fill with files ahead", given.ram);
        return (false, Reason::new(text).with("ram_bytes", given.ram.0 as f64));
    }
    if given.homes_rotate {
        let text =
            "home directories are on a rotating disk, and so programs in them and everybody's profiles";
        return (true, Reason::new(text));
    }
    let Some(read) = given.file_read else {
        return (false, Reason::new("the disk with the programs was not measured"));
    };
    let wait = Nanos(read.0.saturating_mul(REQUESTS));
    let text = format!(
        "a random read of the disk with the programs takes {read}, so a usual launch of {REQUESTS} reads waits {wait}; prefetch starts at {LEAST_WAIT}"
    );
    (
        wait >= LEAST_WAIT,
        Reason::new(text).with("file_read_ns", read.0 as f64).with("launch_wait_ns", wait.0 as f64),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIVEN: Given<'_> =
        Given { file_read: None, homes_rotate: false, ram: Bytes::mib(1024), other: None };

    fn is_on(given: Given<'_>) -> bool {
        pays(given).0
    }

    #[test]
    fn it_pays_where_launches_wait() {
        let on_disk = |us| Given { file_read: Some(Nanos(us * 1_000)), ..GIVEN };
        // a rotating disk, an SD card; a SATA SSD, an NVMe disk
        assert_eq!([9_000, 1_500, 120, 70].map(|us| is_on(on_disk(us))), [true, true, false, false]);
        assert!(!is_on(GIVEN), "not measured");
        assert!(is_on(Given { homes_rotate: true, ..on_disk(70) }), "profiles, Steam, flatpak --user");
        assert!(!is_on(Given { homes_rotate: true, ram: Bytes::mib(124), ..on_disk(70) }));
        assert!(!is_on(Given { ram: Bytes::mib(124), ..on_disk(9_000) }));
        assert!(!is_on(Given { other: Some("preload"), ..on_disk(9_000) }));
        assert!(is_on(on_disk(u64::MAX / 1_000)));
    }

    #[test]
    fn the_reason_has_the_numbers() {
        let (_, reason) = pays(Given { file_read: Some(Nanos(9_000_000)), ..GIVEN });
        assert_eq!(
            reason.text,
            "a random read of the disk with the programs takes 9.00 ms, so a usual launch of 250 reads waits 2.25 s; prefetch starts at 150 ms"
        );
        assert_eq!(reason.numbers["launch_wait_ns"], 2.25e9);
    }
}

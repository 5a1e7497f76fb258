//! A *guest*: the session in the small machine of [`eke_vm`], where everything is real: another kernel, a small
//! RAM that pools and page cache share, zswap and zstd, no charging by hand.
//!
//! Counts compare there (documents held, kills, pages moved); times only as ratios: the emulated CPU is 10 to 18 times
//! slower. The swap disk is slowed down alike ([`peer::LAPTOP`]), and [`for_emulation`] raises a session's time limits.
//!
//! - [`peer`]: a guest's means against the shortage
//! - [`script`]: the guest's shell script
//! - [`outcome`]: events and counters from the guest's output
//! - [`image`]: the disk
//! - [`act`]: the runs

pub mod act;
pub mod error;
pub mod image;
pub mod outcome;
pub mod peer;
pub mod script;

pub use act::{GuestRun, measure, run};
use eke_bench_core::test_image::{Parts, Placed};
use eke_bench_desktop::desktop::needs;
use eke_bench_desktop::session::{Act, Spec};
pub use error::Error;
pub use image::{ensure_image, make_image};
pub use outcome::GuestOutcome;
pub use peer::Peer;

use std::path::{Path, PathBuf};

/// How many times longer a guest may take for a page.
pub const SLOWER: f64 = 15.0;

/// Debian packages for the guest's tree, extracted and not installed ([`eke_vm::fetch_package`]): if installed, the second sets up swap
/// at this machine's next boot. Without them their peers are set up by documented values.
#[must_use]
pub fn packages() -> Vec<&'static str> {
    vec!["zram-tools", "systemd-zram-generator"]
}

/// Programs of this host that these packages call, as far as they exist.
const CALLED: [&str; 4] =
    ["/bin/bash", "/usr/sbin/mkswap", "/usr/sbin/swapon", "/lib/systemd/systemd-makefs"];

/// The contents of a disk without a viewer: `programs` of this host, and `own` in `/usr/bin`.
#[must_use]
pub fn bare_parts(own: &[PathBuf], programs: &[&str]) -> Parts {
    let called = CALLED.iter().copied().filter(|path| Path::new(path).exists());
    Parts {
        programs: programs.iter().copied().chain(called).map(PathBuf::from).collect(),
        placed: in_usr_bin(own),
        ..Parts::default()
    }
}

fn in_usr_bin(own: &[PathBuf]) -> Vec<Placed> {
    let placed = |program: &PathBuf| {
        Some(Placed { from: program.clone(), to: Path::new("/usr/bin").join(program.file_name()?) })
    };
    own.iter().filter_map(placed).collect()
}

/// The contents of a guest's disk: the viewer with everything that it needs, programs that the packages call, and `own` (`eke`,
/// `eke-agent` and `eke-bench`) in `/usr/bin`. The caller adds documents. `None` for an unknown viewer.
#[must_use]
pub fn parts(viewer: &str, own: &[PathBuf]) -> Option<Parts> {
    let needs = needs(viewer)?;
    let called = CALLED.iter().copied().filter(|path| Path::new(path).exists());
    Some(Parts {
        programs: needs.programs.into_iter().chain(called).map(PathBuf::from).collect(),
        files: needs.files.into_iter().map(PathBuf::from).collect(),
        placed: in_usr_bin(own),
        ..Parts::default()
    })
}

/// The same session with a guest's time limits, and at most `pages` pages per act.
#[must_use]
pub fn for_emulation(spec: &Spec, pages: u32) -> Spec {
    let fewer = |act: &Act| match *act {
        Act::Browse { document, pages: wanted, back } => {
            Act::Browse { document, pages: wanted.min(pages), back }
        }
        other => other,
    };
    Spec { acts: spec.acts.iter().map(fewer).collect(), patience_s: spec.patience_s * SLOWER, ..spec.clone() }
}

/// Notes for the report.
#[must_use]
pub fn notes() -> Vec<String> {
    let notes = [
        "The small machine is QEMU in software emulation with Debian's own kernel: its CPU is 10 to 18 times slower than \
         this one's. Counts (documents, kills, pages moved) compare with each other; times only as \
         ratios between variants in it. A page may take 15 times as long before it counts as too slow.",
        "The programs, libraries and documents are on a local virtual disk without limits; only the swap disk is slow.",
        "The swap disk's 120 requests and 60 MB a second are of the machine's own time, which passes 15 times slower: on \
         this one's clock they are 8 requests and 4 MB.",
        "Every run starts from the same disk image, with an empty page cache.",
        "eke has its default settings.",
        "eke was set up as at boot, from what `eke up` had measured in a boot before, with 256 MiB more RAM, while \
         the first document was open; its agent ran. The others need no measurement.",
    ];
    notes.map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guests_disk_has_the_viewer_and_our_programs() {
        let parts = parts("mupdf", &["/build/eke".into()]).unwrap();
        assert!(parts.programs.contains(&PathBuf::from("Xvfb")));
        assert_eq!(parts.placed, [Placed { from: "/build/eke".into(), to: "/usr/bin/eke".into() }]);
        assert_eq!(super::parts("kpdf", &[]), None);
    }

    #[test]
    fn a_guest_gets_fewer_pages_and_more_patience() {
        let text = r#"{"screen":[800,600],"viewer":"xpdf","documents":["/a"],"ballast":{"size":0,"ratio":1.0},
            "merge_same_pages":false,"patience_s":10.0,"acts":[{"do":"open","document":0},
            {"do":"browse","document":0,"pages":50,"back":true}]}"#;
        let spec = for_emulation(&serde_json::from_str(text).unwrap(), 10);
        assert_eq!(spec.patience_s, 150.0);
        assert_eq!(spec.acts[0], Act::Open { document: 0 });
        assert_eq!(spec.acts[1], Act::Browse { document: 0, pages: 10, back: true });
    }
}

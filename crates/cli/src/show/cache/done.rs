//! What `eke cache warm` and `eke cache umount` did, as text.

use std::fmt::Write as _;
use std::path::Path;

use eke_cache_mounts::holders::Holder;
use eke_cache_mounts::status::WarmProgress;
use eke_model::text::one_line;

use super::Shown as _;
use crate::documents::{CacheUmount, WarmedPath};

/// The most processes that the error of a busy mount names.
const NAMED: usize = 8;

/// How far `eke cache warm` is.
pub fn warming(p: &WarmProgress) -> String {
    if !p.surveyed {
        return format!("counting, {} files so far", p.files);
    }
    format!(
        "{} of {} files, {} of {}; {} read, {} kept in {} more of memory",
        p.files_done, p.files, p.passed, p.bytes, p.read, p.kept, p.taken
    )
}

/// `eke cache warm`.
pub fn warmed(w: &WarmedPath) -> String {
    let (path, p) = (w.path.shown(), &w.progress);
    let mut out = match p.full {
        true => format!(
            "{path}: the cache is full. {} of {} fit, {} of {} files.\n",
            p.kept, p.bytes, p.files_done, p.files
        ),
        false => format!("{path}: {} of {} in {} files are in memory.\n", p.kept, p.bytes, p.files),
    };
    let _ = writeln!(
        out,
        "  {} were read from the disk in {:.1} s, and take {} of memory.",
        p.read, w.seconds, p.taken
    );
    if p.incompressible.0 > 0 {
        let _ = writeln!(out, "  {} do not compress, and are not kept.", p.incompressible);
    }
    if let Some(error) = &p.first_error {
        let _ = writeln!(out, "  {} could not be read; the first: {}", p.failed, one_line(error));
    }
    out
}

/// `eke cache umount`.
pub fn unmounted(d: &CacheUmount) -> String {
    let mut out = match d.lazy {
        true => format!("{} is unmounted; open files work until they are closed.", d.place.shown()),
        false => format!("{} is unmounted.", d.place.shown()),
    };
    if !d.by_supervisor {
        out += " Its supervisor was dead or silent.";
    }
    if d.under {
        out += " The compressed page cache below it is visible now.";
    }
    out
}

/// Why it is not unmounted.
pub fn busy(place: &Path, holders: &[Holder]) -> String {
    let mut out = format!("{} is in use", place.shown());
    if holders.is_empty() {
        return out + " by processes that you cannot see";
    }
    for (i, h) in holders.iter().take(NAMED).enumerate() {
        let _ = write!(out, "{} {} ({}) {}", if i == 0 { ":" } else { "," }, h.pid, one_line(&h.name), h.how);
    }
    if holders.len() > NAMED {
        let _ = write!(out, ", and {} more", holders.len() - NAMED);
    }
    out
}

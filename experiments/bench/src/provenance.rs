//! Where the results of this program come from.

use std::time::SystemTime;

use eke_linux::Root;
use eke_results::report::Provenance;

/// For an experiment that starts now on the machine of `root`.
pub fn now(root: &Root) -> Provenance {
    let started = httpdate::fmt_http_date(SystemTime::now());
    Provenance::new(env!("CARGO_PKG_VERSION"), env!("EKE_COMMIT"), started, root)
}

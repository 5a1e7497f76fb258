//! eke for the clients of an LTSP server.
//!
//! ```text
//! ltsp.conf, leases, /proc/net/arp ─> clients ─┬─> scrape (HTTP) ─> rows ─> status ─> table or JSON
//!                                              └─> targets: a file for Prometheus' file-based discovery
//! ```
//!
//! # Layout
//! - [`clients`]: who the clients are, and what `ltsp.conf` says about each (pure)
//! - [`mod@scrape`]: a client's page of metrics, within a deadline
//! - [`status`]: what the server shows, from those pages (pure); [`targets`]: for Prometheus (pure)
//! - [`documents`]: what `plan`, `install` and `uninstall` print as JSON
//!
//! `eke_apply::boot::ltsp` writes the clients' script; `eke_ltsp_conf` parses. There is no protocol and no store of eke's own: clients serve the
//! metrics that every eke exports, and history is Prometheus' business.

pub mod clients;
pub mod documents;
pub mod scrape;
pub mod status;
pub mod targets;

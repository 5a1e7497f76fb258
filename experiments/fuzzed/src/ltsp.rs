//! What an LTSP server reads of its clients: `ltsp.conf`, leases, neighbours, and pages of metrics.

use eke_ltsp_conf::leases::{is_mac, leases};
use eke_ltsp_conf::neighbours::neighbours;
use eke_ltsp_conf::options;
use eke_ltsp_conf::sections::{Who, assigned, macs, of_server};
use eke_metrics::parse::rows;

use crate::input::{Input, text};

/// All of an LTSP server's sections, for a client that the input names.
pub fn ltsp_clients(data: &[u8]) {
    let mut input = Input(data);
    let length = input.u8();
    let name = text(input.bytes(usize::from(length))).into_owned();
    let text = text(input.0);
    for lease in leases(&text, 1000) {
        assert!(is_mac(&lease.mac), "{lease:?}");
    }
    let _ = neighbours(&text);
    let Ok(entries) = eke_ltsp_conf::entries(&text) else { return };
    // An empty file lacks its first line.
    let lines = text.lines().count().max(1);
    for wrong in options::wrong(&entries) {
        assert!((1..=lines).contains(&wrong.line), "line {} of {lines}", wrong.line);
    }
    let who = Who { mac: macs(&entries).pop(), ip: Some(name.clone()), name: Some(name) };
    for assigned in [assigned(&entries, &who), of_server(&entries)] {
        let _ = (options::is_on(&assigned), options::metrics_port(&assigned));
    }
}

/// A client's page of metrics, and its answer by HTTP.
pub fn metrics_page(data: &[u8]) {
    let page = text(data);
    let found = rows(&page);
    assert!(found.len() <= page.lines().count(), "more rows than lines");
    if let Ok(body) = eke_ltsp::scrape::body(data) {
        let _ = rows(&body);
    }
}

//! Experiments: results, documents, programs, and output of helpers.

use eke_bench_cache::trace;
use eke_bench_core::process;
use eke_bench_core::test_image::start;
use eke_bench_desktop::documents::pages;
use eke_bench_desktop::tabs::{server, wire};
use eke_bench_memory::guest;
use eke_bench_startup as startup;
use eke_bench_web as web;
use eke_results::page;
use eke_results::report::saved;

use crate::again::comes_back;
use crate::input::{Input, text, two};

/// `eke bench show FILE`: makes a table and a page, in which no name becomes markup.
pub fn bench_report(data: &[u8]) {
    let Ok(report) = saved::parse(&text(data)) else { return };
    comes_back(&report);
    let _ = report.to_string();
    let page = page::page(&report);
    assert!(!page.contains("<img") && !page.contains("<script"), "a name became markup");
    assert!(page.len() < (64 << 20), "a page of {} bytes", page.len());
}

/// Programs: their dynamic linker.
pub fn elf(data: &[u8]) {
    let _ = start::of(data);
    let (found, _) = start::libraries(&text(data));
    assert!(found.iter().all(|path| path.is_absolute()));
}

/// PDFs: their number of pages.
pub fn pdf(data: &[u8]) {
    let bytes = [b"%PDF-1.7\n", data].concat();
    if let Ok(pages) = pages::count(bytes) {
        assert!(pages > 0);
    }
}

/// Requests of a browser to the local server, answers of a server, and a browser's messages over its pipe.
pub fn http_requests(data: &[u8]) {
    if let server::Request::Get(url) = server::parse_request(data) {
        let _ = server::find(&url, &["page".to_owned()]);
    }
    if let web::client::reply::Head::Whole { head, .. } = web::client::reply::head(data) {
        assert!(head <= data.len());
    }
    let mut inbox = wire::Inbox::default();
    let mut input = Input(data);
    let step = usize::from(input.u8()).max(1);
    let mut count = 0;
    for piece in input.0.chunks(step) {
        inbox.push(piece);
        while let Some(message) = inbox.next_message() {
            count += 1;
            if let wire::Message::Event { method, params, .. } = message {
                let _ = wire::lost(&method, &params);
            }
        }
    }
    assert!(count <= data.len());
}

/// Traces, and the output of other programs in experiments.
pub fn bench_texts(data: &[u8]) {
    let (first, second) = two(data);
    let _ = eke_cache_replay::parse(&first);
    if let Ok(requests) = trace::recorded::parse(&first) {
        assert!(!requests.is_empty());
    }
    let _ = startup::calls::parse(&first).seconds();
    let maps = startup::maps::parse(&first).collect();
    let _ = startup::maps::size(&maps);
    let installed = startup::packages::Installed::parse(&first);
    let _ = installed.closure([&*second]);
    let outcome = guest::outcome::parse(&first);
    let _ = (outcome, guest::outcome::event(&second), process::mib(&first, &second));
    let _ = first.parse::<web::Requests>();
}

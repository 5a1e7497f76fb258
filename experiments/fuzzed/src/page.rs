//! The web page: access control and history.

use std::net::SocketAddr;
use std::sync::OnceLock;

use eke_dash::history::file::open;
use eke_dash::history::series::SERIES;
use eke_dash::history::{History, SPANS};
use eke_dash::server::guard::{Guard, Verdict, is_this_machine};
use eke_linux::token::Token;

use crate::input::{Input, patched, text};
use crate::scratch;

const NOW_S: u64 = 1_800_000_000;

/// Access needs the token, and on loopback only names of this machine are accepted.
pub fn dash_guard(data: &[u8]) {
    let mut input = Input(data);
    let (host, query) = (text(input.piece()), text(input.piece()));
    let cookies = text(input.0);
    let token = Token::of([0xab; 16]);
    let has_token = query.contains(token.text()) || cookies.contains(token.text());
    let address: SocketAddr = ([10, 0, 0, 1], 7117).into();
    let verdict = Guard::for_address(address, token.clone()).judge(Some(&host), Some(&query), Some(&cookies));
    assert!(has_token || verdict == Verdict::Locked, "let in without the token");
    let local: SocketAddr = ([127, 0, 0, 1], 7117).into();
    let verdict = Guard::for_address(local, token).judge(Some(&host), Some(&query), Some(&cookies));
    assert_eq!(verdict == Verdict::Welcome, is_this_machine(&host));
    let name = host.to_ascii_lowercase();
    let may_be = name.starts_with("localhost")
        || name.starts_with("127.")
        || name.starts_with('[')
        || name.parse::<std::net::Ipv6Addr>().is_ok_and(|ip| ip.is_loopback());
    assert!(may_be || !is_this_machine(&host), "{host:?} is taken for this machine");
}

fn good() -> &'static [u8] {
    static GOOD: OnceLock<Vec<u8>> = OnceLock::new();
    GOOD.get_or_init(|| {
        let path = scratch::empty("good").join("history.db");
        let mut file = open(&path, NOW_S).expect("a history").file;
        let mut history = History::default();
        for n in 0..200 {
            history.push(NOW_S - 1000 + n * 5, &[Some(n as f64); SERIES.len()]);
        }
        file.save(&mut history, NOW_S).expect("points");
        drop(file);
        std::fs::read(&path).expect("a history")
    })
}

/// A history with changed bytes: it is read or set aside, and continues.
pub fn dash_history(data: &[u8]) {
    let path = scratch::empty("history").join("history.db");
    std::fs::write(&path, patched(good(), data)).expect("a file");
    let Ok(opened) = open(&path, NOW_S) else { return };
    let (mut file, mut history) = (opened.file, opened.history);
    for (span, place) in SPANS.iter().zip(0..) {
        let most = span.keep_s / span.step_s + 2;
        let times: Vec<u64> = history.after(place, 0).map(|p| p.at_s).collect();
        assert!(times.len() as u64 <= most, "{} points of a {}", times.len(), span.name);
        assert!(times.is_sorted(), "points are not in order");
    }
    history.push(NOW_S + 10, &[Some(1.0); SERIES.len()]);
    history.push(NOW_S + 500, &[None; SERIES.len()]);
    let _ = file.save(&mut history, NOW_S + 500);
}

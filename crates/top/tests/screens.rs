//! The screen at the sizes that people have.

#![allow(clippy::unwrap_used, reason = "test code")]

mod common;

use common::{PLAIN, disks, refresh, view};
use eke_model::snapshot::Snapshot;
use eke_present::refresh::Refresh;
use eke_top::view::{Key, Means, View};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::{Color, Modifier};

fn drawn(view: &View, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| eke_top::draw(frame, view)).unwrap();
    terminal
}

/// The lines without TestBackend's quotes and without trailing blanks.
fn text(view: &View, width: u16, height: u16) -> String {
    let shown = drawn(view, width, height).backend().to_string();
    shown.lines().map(|l| l.trim_matches('"').trim_end()).collect::<Vec<_>>().join("\n")
}

#[test]
fn an_old_terminal_has_all_parts() {
    insta::assert_snapshot!(text(&view(PLAIN, 40), 80, 24));
}

#[test]
fn a_larger_one_has_details_and_curves() {
    insta::assert_snapshot!(text(&view(PLAIN, 70), 120, 40));
}

#[test]
fn a_large_one_has_curves_beside() {
    insta::assert_snapshot!(text(&view(PLAIN, 70), 200, 50));
}

#[test]
fn one_that_is_too_small_says_so() {
    insta::assert_snapshot!(text(&view(PLAIN, 3), 40, 10));
}

#[test]
fn the_linux_console_gets_ascii_alone() {
    let shown = text(&view(Means { colours: true, ascii: true }, 70), 120, 40);
    assert!(shown.is_ascii(), "{shown}");
    insta::assert_snapshot!(shown);
}

/// The font of a console has 256 or 512 characters, and which ones is unknown.
#[test]
fn a_console_gets_nothing_else_at_any_size() {
    for help in [false, true] {
        for (width, height) in [(40, 10), (80, 24), (100, 37), (160, 64), (240, 67)] {
            let mut view = view(Means { colours: true, ascii: true }, 70);
            view.help = help;
            let mut odd = refresh(71);
            odd.snapshot.io = Some(disks());
            odd.snapshot.events[3].text = "Grüße: 5 µs × 3 → “…” \u{2588}\u{1f600}".into();
            odd.caches[1].place = "/home/日本".into();
            view.refresh(Ok(odd), 71_000);
            let cells = drawn(&view, width, height).backend().buffer().content.clone();
            let strange: Vec<&str> = cells.iter().map(|c| c.symbol()).filter(|s| !s.is_ascii()).collect();
            assert_eq!(strange, Vec::<&str>::new(), "{width}x{height}");
        }
    }
}

#[test]
fn latencies_are_strips_where_there_is_room() {
    let mut view = view(PLAIN, 1);
    let mut measured = refresh(1);
    measured.snapshot.io = Some(disks());
    view.refresh(Ok(measured), 1_000);
    let strips = "65.5 µs to 33.6 ms: read [█▄▁  ▁   ] write [      █▃▁]";
    assert!(text(&view, 120, 40).contains(strips), "{}", text(&view, 120, 40));
    assert!(!text(&view, 80, 24).contains(strips));
    view.means.ascii = true;
    assert!(text(&view, 120, 40).contains("65.5 us to 33.6 ms: read [#=.  .   ] write [      #-.]"));
}

#[test]
fn the_help_explains_the_words() {
    let mut view = view(PLAIN, 3);
    view.press(Key::Help);
    insta::assert_snapshot!(text(&view, 80, 24));
}

#[test]
fn a_machine_without_an_agent_remedies_or_psi_is_shown_as_it_is() {
    let mut view = View::new(PLAIN, 5_000);
    view.refresh(
        Ok(Refresh {
            snapshot: Snapshot { backend: "none".into(), ..Snapshot::default() },
            ..Refresh::default()
        }),
        0,
    );
    insta::assert_snapshot!(text(&view, 80, 24));
}

#[test]
fn an_agent_that_is_gone_is_reported_and_its_decisions_stay() {
    let mut view = view(PLAIN, 3);
    let own = Refresh {
        snapshot: Snapshot { agent: None, events: Vec::new(), ..common::snapshot(4) },
        ..refresh(4)
    };
    view.refresh(Ok(own.clone()), 4_000);
    view.refresh(Ok(own), 9_000);
    let shown = text(&view, 80, 24);
    assert!(
        shown.starts_with("eke top  ! agent gone for 5 s; reading the machine until it is back"),
        "{shown}"
    );
    assert!(shown.contains("decisions: the agent's last 4"), "{shown}");
}

#[test]
fn tasks_at_their_groups_limit_do_not_make_the_machine_full() {
    let mut view = view(PLAIN, 1);
    assert!(!text(&view, 80, 24).contains("in a group"));
    let mut plenty = refresh(1);
    plenty.snapshot.model.available = eke_model::units::Bytes::mib(3_000);
    view.refresh(Ok(plenty.clone()), 1_000);
    assert!(!text(&view, 80, 24).contains("in a group"), "no group is at its limit");
    plenty.snapshot.group_at_limit = Some("user.slice/app".into());
    view.refresh(Ok(plenty), 1_000);
    assert!(text(&view, 80, 24).contains("2.9 GiB of 3.8 GiB available; tasks wait in a group with a limit"));
}

#[test]
fn scrolled_decisions_begin_with_an_older_one() {
    let mut view = view(PLAIN, 3);
    view.press(Key::Down);
    let shown = text(&view, 80, 24);
    assert!(!shown.contains("Added zram2") && shown.contains("compression ratio was predicted"), "{shown}");
    assert!(shown.contains("decisions: 2 to 4 of 4"), "{shown}");
}

/// Every colour has a word or a sign beside it, so the screen reads the same without.
#[test]
fn without_colours_nothing_is_lost() {
    let colours = view(Means { colours: true, ascii: false }, 70);
    let plain = view(PLAIN, 70);
    assert_eq!(text(&colours, 120, 40), text(&plain, 120, 40));
    let cells = |view: &View| drawn(view, 120, 40).backend().buffer().content.clone();
    assert!(cells(&plain).iter().all(|c| c.fg == Color::Reset && c.bg == Color::Reset));
    assert!(cells(&plain).iter().any(|c| c.modifier.contains(Modifier::BOLD)));
    assert!(cells(&colours).iter().any(|c| c.fg == Color::Yellow));
}

/// Control characters of an event are shown, not executed.
#[test]
fn no_text_reaches_the_terminal_as_a_command() {
    let mut view = view(PLAIN, 1);
    let mut evil = refresh(2);
    evil.snapshot.events[3].text = "evil \u{1b}[2J\u{7} text".into();
    evil.snapshot.backend = "zram (\u{1b}c)".into();
    evil.caches[1].stats = Err("\u{9b}31m".into());
    view.refresh(Ok(evil), 2_000);
    for (width, height) in [(80, 24), (200, 50)] {
        let shown = text(&view, width, height);
        assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
    }
}

#[test]
fn every_size_is_drawn_without_a_panic() {
    let mut view = view(PLAIN, 5);
    for help in [false, true] {
        view.help = help;
        for (width, height) in
            [(1, 1), (60, 18), (61, 200), (99, 34), (100, 34), (160, 40), (161, 41), (400, 18), (500, 120)]
        {
            drawn(&view, width, height);
        }
    }
}

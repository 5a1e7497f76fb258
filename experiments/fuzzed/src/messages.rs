//! Messages on sockets: the agent's, and those of mounts, which any user may own.

use eke_cache_mounts::line::{Line, REQUEST_MOST, parse};
use eke_cache_mounts::status;
use eke_metrics::{Format, Reading, text as metrics};
use eke_model::{applied, snapshot};
use eke_present::refresh::Refresh;
use eke_top::View;
use eke_top::view::{Key, Means};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use crate::again::comes_back;
use crate::input::Input;

/// Requests to the agent, its answers, and their use in `eke top`, metrics and the page.
pub fn agent_messages(data: &[u8]) {
    let request = eke_agent::request::decode(data, false);
    assert!(!matches!(request, Ok(snapshot::Request::Stop | snapshot::Request::Reload)), "root's alone");
    if let Ok(request) = eke_agent::request::decode(data, true) {
        comes_back(&request);
    }
    if let Ok(applied) = serde_json::from_slice::<applied::Applied>(data) {
        comes_back(&applied);
    }
    let Ok(answer) = serde_json::from_slice::<snapshot::Response>(data) else { return };
    comes_back(&answer);
    let snapshot::Response::Status(snapshot) = answer else { return };
    let reading = Reading { snapshot: (*snapshot).clone(), caches: Vec::new() };
    for format in [Format::OpenMetrics, Format::Prometheus] {
        let _ = metrics::text(&reading, format);
    }
    shown(Refresh { snapshot: *snapshot, caches: Vec::new(), reads: None });
}

/// The terminal gets no control character, whatever the names are.
fn shown(refresh: Refresh) {
    let mut view = View::new(Means { colours: true, ascii: false }, 1000);
    view.refresh(Ok(refresh.clone()), 0);
    view.refresh(Ok(refresh), 1000);
    view.press(Key::Pause);
    for size in [(80, 24), (200, 60), (60, 20)] {
        let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).expect("a terminal in memory");
        terminal.draw(|frame| eke_top::draw(frame, &view)).expect("cells in memory");
        let cells = terminal.backend().buffer().content();
        assert!(!cells.iter().any(|cell| cell.symbol().contains(char::is_control)), "a terminal would obey");
    }
}

/// A line in pieces, as a request to a mount or an answer of one.
pub fn mount_messages(data: &[u8]) {
    let mut input = Input(data);
    let (step, mut line, mut rest) = (usize::from(input.u8()).max(1), Line::new(REQUEST_MOST), input.0);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(step.min(rest.len()));
        rest = after;
        match line.take(piece) {
            Ok(None) => {}
            Ok(Some(bytes)) => {
                assert!(bytes.len() <= REQUEST_MOST && !bytes.contains(&b'\n'));
                break;
            }
            Err(e) => {
                assert!(!e.to_string().contains(char::is_control), "a terminal would obey");
                break;
            }
        }
    }
    match parse::<status::Request>(input.0) {
        Ok(request) => comes_back(&request),
        Err(e) => assert!(!e.to_string().contains(char::is_control), "a terminal would obey: {e:?}"),
    }
    if let Ok(response) = parse::<status::Response>(input.0) {
        comes_back(&response);
    }
    if let Ok(start) = parse::<status::Start>(input.0) {
        comes_back(&start);
    }
}

//! Recordings: SQLite files from anybody.

use std::sync::OnceLock;

use eke_model::span;
use eke_record::load::Recording;
use eke_record::row::{Mark, Row};
use eke_record::steps::{Document, steps};
use eke_record::store::Store;
use eke_record::{csv, html, marks as steps_said, plots};

use crate::input::{patched, text};
use crate::scratch;

fn good() -> &'static [u8] {
    static GOOD: OnceLock<Vec<u8>> = OnceLock::new();
    GOOD.get_or_init(|| {
        let path = scratch::empty("good").join("good.eke");
        let mut store = Store::create(&path, true).expect("a recording");
        let row = |i: u64| Row {
            time_ms: i * 100,
            free_bytes: Some(i << 20),
            pages_in: Some(i),
            memory_some_us: Some(i * 7),
            ..Row::default()
        };
        let marks = [Mark { time_ms: 250, name: "a <b>".into() }, Mark { time_ms: 700, name: "c".into() }];
        store.note(&[("subject", "sh".into()), ("started_unix_ms", "5".into())]).expect("a note");
        store.write(&(0..40).map(row).collect::<Vec<_>>(), &marks).expect("rows");
        std::fs::read(&path).expect("a recording")
    })
}

/// A recording with changed bytes: it is read, and all outputs are made from it.
pub fn recording(data: &[u8]) {
    let path = scratch::empty("recording").join("foreign.eke");
    std::fs::write(&path, patched(good(), data)).expect("a file");
    let Ok(recording) = Recording::read(&path) else { return };
    let document = Document::from(&recording);
    assert!(document.seconds >= 0.0 && document.samples > 0);
    let _ = (serde_json::to_string(&document).expect("numbers"), steps(&recording));
    let page = html::page(&recording);
    assert_eq!(page.matches("<script").count(), page.matches("</script>").count(), "a name became markup");
    assert!(!page.contains("<img"), "a name became markup");
    assert!(page.len() < 64 << 20, "a page of {} bytes", page.len());
    let _ = csv::csv(&recording);
    let _ = plots::files(&recording);
}

/// Step names of a process, and time spans of the command line.
pub fn marks(data: &[u8]) {
    let text = text(data);
    if let Some((_, name)) = steps_said::decode(&text) {
        assert!(!name.is_empty() && !name.contains(char::is_control));
    }
    let _ = (span::every(&text), span::length(&text));
}

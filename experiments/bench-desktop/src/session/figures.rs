//! From what happened in a session to figures. Pure.

use super::{End, Event, Held};

/// Some pages of one document, turned one after the other in one direction.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Browsed {
    /// Which document.
    pub document: usize,
    /// Towards the beginning.
    pub back: bool,
    /// How many documents were open.
    pub open: usize,
    /// Each page's time, in order.
    pub seconds: Vec<f64>,
    /// Pages that did not look as expected.
    pub unlike: usize,
}

/// The pages that were turned, in order: a new entry begins with another document, another direction, or more open
/// documents.
pub fn browsed(events: &[Event]) -> Vec<Browsed> {
    let mut all: Vec<Browsed> = Vec::new();
    let mut open = 0;
    for event in events {
        match *event {
            Event::Opened { .. } => open += 1,
            Event::Page { document, back, seconds, as_expected, .. } => {
                let same = |b: &&mut Browsed| (b.document, b.back, b.open) == (document, back, open);
                let unlike = usize::from(as_expected == Some(false));
                match all.last_mut().filter(same) {
                    Some(last) => last.push(seconds, unlike),
                    None => {
                        all.push(Browsed { document, back, open, seconds: vec![seconds], unlike });
                    }
                }
            }
            _ => {}
        }
    }
    all
}

impl Browsed {
    fn push(&mut self, seconds: f64, unlike: usize) {
        self.seconds.push(seconds);
        self.unlike += unlike;
    }
}

/// The times of opening, in order.
pub fn openings(events: &[Event]) -> Vec<f64> {
    let seconds = |event: &Event| match event {
        Event::Opened { seconds, .. } => Some(*seconds),
        _ => None,
    };
    events.iter().filter_map(seconds).collect()
}

/// The times of window switches, in order.
pub fn switches(events: &[Event]) -> Vec<f64> {
    let seconds = |event: &Event| match event {
        Event::Switched { seconds, .. } => Some(*seconds),
        _ => None,
    };
    events.iter().filter_map(seconds).collect()
}

/// How many documents were opened and browsed through `pages` pages, and the memory that they held then.
pub fn capacity(events: &[Event], pages: u32) -> (usize, Held) {
    let mut complete = (0, Held::default());
    let (mut turned, mut at) = (0, None);
    for event in events {
        match *event {
            Event::Opened { .. } => turned = 0,
            Event::Page { document, .. } => {
                turned = if at == Some(document) { turned + 1 } else { 1 };
                at = Some(document);
            }
            Event::Held(held) if turned >= pages => {
                complete = (complete.0 + 1, held);
                turned = 0;
            }
            _ => {}
        }
    }
    complete
}

/// What each page looks like, as [`super::Spec::expected`] wants it; `documents` is how many there are.
pub fn looks(events: &[Event], documents: usize) -> Vec<Vec<u64>> {
    let mut looks = vec![Vec::new(); documents];
    for event in events {
        match *event {
            Event::Opened { document, content, .. } => put(&mut looks, document, 0, content),
            Event::Page { document, page, content, back: false, .. } => {
                put(&mut looks, document, page as usize, content);
            }
            _ => {}
        }
    }
    looks
}

/// Pages come in order; one that is beyond the next is not known.
fn put(looks: &mut [Vec<u64>], document: usize, page: usize, content: u64) {
    if let Some(pages) = looks.get_mut(document).filter(|pages| pages.len() == page) {
        pages.push(content);
    }
}

/// How it ended; `None` if the session's driver itself was killed.
pub fn end(events: &[Event]) -> Option<&End> {
    match events.last() {
        Some(Event::Ended(end)) => Some(end),
        _ => None,
    }
}

/// What [`end_in_words`] says of a session that went to its end.
pub const ALL_DONE: &str = "all was done";

/// How it ended, in words.
pub fn end_in_words(events: &[Event]) -> String {
    match end(events) {
        None => "the box was killed for want of memory".to_owned(),
        Some(End::Finished) => ALL_DONE.to_owned(),
        Some(End::Killed { what, signal: Some(9) }) => format!("{what} was killed for want of memory"),
        Some(End::Killed { what, signal: Some(signal) }) => format!("{what} died of signal {signal}"),
        Some(End::Killed { what, signal: None }) => format!("{what} ended"),
        Some(End::TooSlow { what }) => format!("{what} took too long"),
        Some(End::Failed { why }) => why.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eke_model::units::Bytes;

    fn opened(document: usize) -> Event {
        Event::Opened { document, seconds: 1.0, content: 100 * document as u64 }
    }

    fn page(document: usize, page: u32, back: bool, seconds: f64) -> Event {
        let content = 100 * document as u64 + u64::from(page);
        Event::Page { document, page, back, seconds, content, as_expected: Some(page != 2) }
    }

    fn held(documents: usize) -> Event {
        Event::Held(Held { documents, anonymous: Bytes(documents as u64), ..Held::default() })
    }

    fn two_documents() -> Vec<Event> {
        vec![
            Event::Ready { seconds: 0.5 },
            opened(0),
            held(1),
            page(0, 1, false, 0.1),
            page(0, 2, false, 0.2),
            held(1),
            page(0, 1, true, 0.3),
            page(0, 0, true, 0.4),
            held(1),
            opened(1),
            held(2),
            page(1, 1, false, 0.5),
        ]
    }

    #[test]
    fn pages_are_told_apart_by_document_direction_and_what_is_open() {
        let all = browsed(&two_documents());
        let seen: Vec<_> =
            all.iter().map(|b| (b.document, b.back, b.open, b.seconds.len(), b.unlike)).collect();
        assert_eq!(seen, [(0, false, 1, 2, 1), (0, true, 1, 2, 0), (1, false, 2, 1, 0)]);
    }

    #[test]
    fn a_document_counts_when_all_of_its_pages_were_turned() {
        let (count, held) = capacity(&two_documents(), 2);
        assert_eq!(
            (count, held.documents),
            (2, 1),
            "forth and back of the first; the second is not complete"
        );
        let forth: Vec<Event> =
            two_documents().into_iter().filter(|e| !matches!(e, Event::Page { back: true, .. })).collect();
        assert_eq!(capacity(&forth, 2).0, 1);
        assert_eq!(capacity(&forth, 3), (0, Held::default()));
    }

    #[test]
    fn looks_are_by_document_and_page() {
        assert_eq!(looks(&two_documents(), 3), [vec![0, 1, 2], vec![100, 101], vec![]]);
    }

    #[test]
    fn without_a_last_word_it_was_killed() {
        assert!(end(&two_documents()).is_none());
        assert!(end_in_words(&two_documents()).contains("the box was killed"));
        let killed = [Event::Ended(End::Killed { what: "viewer of document 3".into(), signal: Some(9) })];
        assert_eq!(end_in_words(&killed), "viewer of document 3 was killed for want of memory");
    }
}

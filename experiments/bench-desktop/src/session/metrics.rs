//! Metrics from a session's events. Pure.

use super::{End, Event, MemoryUse};

/// Consecutive pages of one document in one direction.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Browsed {
    /// The document's index.
    pub document: usize,
    /// Whether the pages were turned towards the beginning.
    pub back: bool,
    /// How many documents were open.
    pub open: usize,
    /// Each page's time, in order.
    pub seconds: Vec<f64>,
    /// Pages whose content was not the expected one.
    pub unexpected: usize,
}

/// The pages that were turned, in order. A new entry begins when the document, the direction or the number of open documents
/// changes.
pub fn browsed(events: &[Event]) -> Vec<Browsed> {
    let mut all: Vec<Browsed> = Vec::new();
    let mut open = 0;
    for event in events {
        match *event {
            Event::Opened { .. } => open += 1,
            Event::Page { document, back, seconds, as_expected, .. } => {
                let same = |b: &&mut Browsed| (b.document, b.back, b.open) == (document, back, open);
                let unexpected = usize::from(as_expected == Some(false));
                match all.last_mut().filter(same) {
                    Some(last) => last.push(seconds, unexpected),
                    None => {
                        all.push(Browsed { document, back, open, seconds: vec![seconds], unexpected });
                    }
                }
            }
            _ => {}
        }
    }
    all
}

impl Browsed {
    fn push(&mut self, seconds: f64, unexpected: usize) {
        self.seconds.push(seconds);
        self.unexpected += unexpected;
    }
}

/// The time to open each document, in order.
pub fn openings(events: &[Event]) -> Vec<f64> {
    let seconds = |event: &Event| match event {
        Event::Opened { seconds, .. } => Some(*seconds),
        _ => None,
    };
    events.iter().filter_map(seconds).collect()
}

/// The time of each window switch, in order.
pub fn switches(events: &[Event]) -> Vec<f64> {
    let seconds = |event: &Event| match event {
        Event::Switched { seconds, .. } => Some(*seconds),
        _ => None,
    };
    events.iter().filter_map(seconds).collect()
}

/// How many documents were opened and browsed through `pages` pages, and the memory that they used then.
pub fn capacity(events: &[Event], pages: u32) -> (usize, MemoryUse) {
    let mut complete = (0, MemoryUse::default());
    let (mut turned, mut at) = (0, None);
    for event in events {
        match *event {
            Event::Opened { .. } => turned = 0,
            Event::Page { document, .. } => {
                turned = if at == Some(document) { turned + 1 } else { 1 };
                at = Some(document);
            }
            Event::Memory(memory) if turned >= pages => {
                complete = (complete.0 + 1, memory);
                turned = 0;
            }
            _ => {}
        }
    }
    complete
}

/// The content of each page of `documents` documents, for [`super::Spec::expected`].
pub fn page_contents(events: &[Event], documents: usize) -> Vec<Vec<u64>> {
    let mut contents = vec![Vec::new(); documents];
    for event in events {
        match *event {
            Event::Opened { document, content, .. } => put(&mut contents, document, 0, content),
            Event::Page { document, page, content, back: false, .. } => {
                put(&mut contents, document, page as usize, content);
            }
            _ => {}
        }
    }
    contents
}

/// Adds a page if it is the document's next one. After a gap, pages are not known.
fn put(contents: &mut [Vec<u64>], document: usize, page: usize, content: u64) {
    if let Some(pages) = contents.get_mut(document).filter(|pages| pages.len() == page) {
        pages.push(content);
    }
}

/// How the session ended; `None` if its driver did not say it: it was killed, or its machine switched off.
pub fn end(events: &[Event]) -> Option<&End> {
    match events.last() {
        Some(Event::Ended(end)) => Some(end),
        _ => None,
    }
}

/// The text of [`describe_end`] for a session that did all acts.
pub const ALL_DONE: &str = "all acts were done";

/// How the session ended, as text.
pub fn describe_end(events: &[Event]) -> String {
    match end(events) {
        None => "it ended without a last event".to_owned(),
        Some(End::Finished) => ALL_DONE.to_owned(),
        Some(End::Killed { what, signal: Some(9) }) => format!("{what} was killed for lack of memory"),
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

    fn memory(documents: usize) -> Event {
        Event::Memory(MemoryUse { documents, anonymous: Bytes(documents as u64), ..MemoryUse::default() })
    }

    fn two_documents() -> Vec<Event> {
        vec![
            Event::Ready { seconds: 0.5 },
            opened(0),
            memory(1),
            page(0, 1, false, 0.1),
            page(0, 2, false, 0.2),
            memory(1),
            page(0, 1, true, 0.3),
            page(0, 0, true, 0.4),
            memory(1),
            opened(1),
            memory(2),
            page(1, 1, false, 0.5),
        ]
    }

    #[test]
    fn pages_are_grouped_by_document_direction_and_number_of_open_documents() {
        let all = browsed(&two_documents());
        let groups: Vec<_> =
            all.iter().map(|b| (b.document, b.back, b.open, b.seconds.len(), b.unexpected)).collect();
        assert_eq!(groups, [(0, false, 1, 2, 1), (0, true, 1, 2, 0), (1, false, 2, 1, 0)]);
    }

    #[test]
    fn a_document_counts_when_all_of_its_pages_were_turned() {
        let (count, memory) = capacity(&two_documents(), 2);
        assert_eq!(
            (count, memory.documents),
            (2, 1),
            "forth and back of the first; the second is not complete"
        );
        let forth: Vec<Event> =
            two_documents().into_iter().filter(|e| !matches!(e, Event::Page { back: true, .. })).collect();
        assert_eq!(capacity(&forth, 2).0, 1);
        assert_eq!(capacity(&forth, 3), (0, MemoryUse::default()));
    }

    #[test]
    fn contents_are_by_document_and_page() {
        assert_eq!(page_contents(&two_documents(), 3), [vec![0, 1, 2], vec![100, 101], vec![]]);
    }

    #[test]
    fn without_an_end_event_no_reason_is_claimed() {
        assert!(end(&two_documents()).is_none());
        assert_eq!(describe_end(&two_documents()), "it ended without a last event");
        let killed = [Event::Ended(End::Killed { what: "viewer of document 3".into(), signal: Some(9) })];
        assert_eq!(describe_end(&killed), "viewer of document 3 was killed for lack of memory");
    }
}

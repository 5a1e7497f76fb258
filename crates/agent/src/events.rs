//! What the agent did or noticed: the newest few events, the same for every client.

use eke_model::snapshot::{EVENTS_KEPT, Event, Message};

/// The newest events, oldest first.
#[derive(Debug, Default)]
pub struct Events {
    list: Vec<Event>,
    /// Important ones that no watching client has got yet.
    news: Vec<Event>,
}

impl Events {
    /// Logs and keeps a message, unless it repeats the last event.
    pub fn push(&mut self, unix_s: u64, message: impl Into<Message>) {
        let Message { text, important } = message.into();
        if self.list.last().is_some_and(|last| last.text == text) {
            return;
        }
        tracing::info!("{text}");
        let event = Event { unix_s, text, important };
        self.news.extend(important.then(|| event.clone()));
        if self.list.len() == EVENTS_KEPT {
            self.list.remove(0);
        }
        self.list.push(event);
    }

    /// The important events since the last call.
    pub fn take_news(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.news)
    }

    /// The kept important events, oldest first.
    pub fn important(&self) -> impl Iterator<Item = &Event> {
        self.list.iter().filter(|event| event.important)
    }

    /// The events, oldest first.
    pub fn as_slice(&self) -> &[Event] {
        &self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_stay_and_nothing_repeats_in_a_row() {
        let mut events = Events::default();
        for n in 0..30 {
            events.push(n, format!("event {n}"));
            events.push(n, format!("event {n}"));
        }
        assert_eq!(events.as_slice().len(), EVENTS_KEPT);
        assert_eq!(events.as_slice().last().map(|e| e.text.as_str()), Some("event 29"));
    }

    #[test]
    fn only_important_ones_are_news_and_only_once() {
        let mut events = Events::default();
        events.push(1, "usual");
        events.push(2, Message::important("it stopped"));
        events.push(3, Message::important("it stopped"));
        assert_eq!(events.take_news().iter().map(|e| e.unix_s).collect::<Vec<_>>(), [2]);
        assert_eq!((events.take_news().len(), events.important().count()), (0, 1));
    }
}

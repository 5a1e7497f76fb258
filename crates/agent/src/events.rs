//! What the agent did or noticed: the newest few events, the same for every client.

use eke_model::snapshot::{EVENTS_KEPT, Event};

/// The newest events, oldest first.
#[derive(Debug, Default)]
pub struct Events {
    list: Vec<Event>,
}

impl Events {
    /// Logs and keeps `text`, a full sentence, unless it repeats the last event.
    pub fn push(&mut self, unix_s: u64, text: impl Into<String>) {
        let text = text.into();
        if self.list.last().is_some_and(|last| last.text == text) {
            return;
        }
        tracing::info!("{text}");
        if self.list.len() == EVENTS_KEPT {
            self.list.remove(0);
        }
        self.list.push(Event { unix_s, text });
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
}

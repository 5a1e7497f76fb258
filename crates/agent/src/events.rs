//! What the agent did or noticed: the newest few events, and the ends of programs, which later events do not push out. Names of programs are for the
//! log, for root and for the program's user; [`Event::for_reader`] hides them from others.

use eke_model::snapshot::{ENDED_KEPT, EVENTS_KEPT, Event, Message, NOBODY, Program};

/// The newest events, oldest first.
#[derive(Debug, Default)]
pub struct Events {
    list: Vec<Event>,
    /// Of all, those that say that a program was ended.
    ended: Vec<Event>,
    /// Important ones that no watching client has got yet.
    news: Vec<Event>,
}

impl Events {
    /// Logs and keeps a message, unless it repeats the last event. The log, which is root's, has the program's name.
    pub fn push(&mut self, unix_s: u64, message: impl Into<Message>) {
        let Message { text, important, program, is_end } = message.into();
        if self.list.last().is_some_and(|last| last.text == text && last.program == program) {
            return;
        }
        let event = Event { unix_s, text, important, program };
        tracing::info!("{}", event.named());
        self.news.extend(important.then(|| event.clone()));
        if is_end {
            keep(&mut self.ended, event.clone(), ENDED_KEPT);
        }
        keep(&mut self.list, event, EVENTS_KEPT);
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

    /// The newest ends of programs, oldest first.
    pub fn ended(&self) -> &[Event] {
        &self.ended
    }

    /// The user as whom this one reads: all who may know no name of a kept program read the same as [`NOBODY`].
    pub fn reader(&self, uid: u32) -> u32 {
        let mut programs = self.list.iter().chain(&self.ended).filter_map(|event| event.program.as_ref());
        let knows_one = |program: &Program| program.may_be_known_to(uid);
        if programs.any(knows_one) { uid } else { NOBODY }
    }
}

fn keep(list: &mut Vec<Event>, event: Event, most: usize) {
    if list.len() == most {
        list.remove(0);
    }
    list.push(event);
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    fn ended(uid: u32, name: &str, pid: u64) -> Message {
        let said = Message::important(format!("Ended: process {pid} of user {uid}"));
        Message { is_end: true, ..said.about(Program { uid, name: Some(name.into()) }) }
    }

    /// What was logged.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(line)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_log_names_the_program_and_the_sentence_does_not() {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber =
            tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
        let mut events = Events::default();
        tracing::subscriber::with_default(subscriber, || events.push(1, ended(1000, "leak", 20)));
        let log = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        assert!(log.trim_end().ends_with(r#""leak": Ended: process 20 of user 1000"#), "{log}");
        assert_eq!(events.as_slice()[0].text, "Ended: process 20 of user 1000");
    }

    #[test]
    fn later_events_do_not_hide_an_end_and_the_ends_have_a_bound() {
        let mut events = Events::default();
        events.push(1, ended(1000, "leak", 20));
        for n in 0..30 {
            events.push(n, format!("event {n}"));
        }
        assert!(events.as_slice().iter().all(|event| event.program.is_none()));
        assert_eq!((events.ended().len(), events.ended()[0].name()), (1, Some("leak")));
        for pid in 0..100 {
            events.push(pid, ended(1000, "leak", pid));
        }
        assert_eq!(events.ended().len(), ENDED_KEPT);
        assert_eq!(events.ended().last().map(|event| event.unix_s), Some(99));
    }

    #[test]
    fn who_may_know_no_name_reads_as_nobody() {
        let mut events = Events::default();
        assert_eq!([0, 1000].map(|uid| events.reader(uid)), [NOBODY; 2], "there is no name");
        events.push(1, ended(1000, "leak", 20));
        assert_eq!([0, 1000, 1001, NOBODY].map(|uid| events.reader(uid)), [0, 1000, NOBODY, NOBODY]);
        for n in 0..30 {
            events.push(n, format!("event {n}"));
        }
        assert_eq!(events.reader(1000), 1000, "the end is still kept");
    }

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

//! Limits how often a log gets lines of one kind, so that a frequent event does not fill it.

/// Most lines of one kind in [`WINDOW_MS`].
pub const OF_A_KIND: u32 = 6;
/// Most lines of all kinds in [`WINDOW_MS`].
pub const OF_ALL: u32 = 60;
/// One minute.
pub const WINDOW_MS: u64 = 60_000;
/// Most kinds to distinguish. Beyond that, the kind with the oldest window is forgotten.
const KINDS: usize = 32;
/// A line's first 64 characters, without their numbers, are its kind.
const KEY: usize = 64;

/// Lines logged in the current windows, by kind.
#[derive(Debug, Default)]
pub struct Repeats {
    kinds: Vec<(String, Window)>,
    all: Window,
}

#[derive(Debug, Default)]
struct Window {
    since_ms: u64,
    logged: u32,
    left_out: u64,
}

impl Window {
    const NEW: Self = Self { since_ms: 0, logged: 0, left_out: 0 };

    fn has_room(&mut self, most: u32, now_ms: u64) -> bool {
        if self.logged == 0 || now_ms.saturating_sub(self.since_ms) >= WINDOW_MS {
            (self.since_ms, self.logged) = (now_ms, 0);
        }
        self.logged < most
    }
}

impl Repeats {
    /// An empty record.
    pub const fn new() -> Self {
        Self { kinds: Vec::new(), all: Window::NEW }
    }

    /// The line to log at `now_ms` on any monotonic clock, with the number of lines left out before it. `None` leaves
    /// this line out.
    pub fn admit(&mut self, line: &str, now_ms: u64) -> Option<String> {
        let all_have_room = self.all.has_room(OF_ALL, now_ms);
        let kind = self.kind(line);
        if !kind.has_room(OF_A_KIND, now_ms) || !all_have_room {
            kind.left_out += 1;
            return None;
        }
        kind.logged += 1;
        let left_out = std::mem::take(&mut kind.left_out);
        self.all.logged += 1;
        Some(if left_out == 0 {
            line.to_owned()
        } else {
            format!("{line} ({left_out} more of the kind were left out before this line)")
        })
    }

    fn kind(&mut self, line: &str) -> &mut Window {
        let key = key(line);
        let number = match self.kinds.iter().position(|(known, _)| *known == key) {
            Some(number) => number,
            None => {
                if self.kinds.len() == KINDS {
                    self.forget_oldest();
                }
                self.kinds.push((key, Window::NEW));
                self.kinds.len() - 1
            }
        };
        &mut self.kinds[number].1
    }

    fn forget_oldest(&mut self) {
        let oldest = self.kinds.iter().enumerate().min_by_key(|(_, (_, window))| window.since_ms);
        if let Some(number) = oldest.map(|(number, _)| number) {
            self.kinds.swap_remove(number);
        }
    }
}

/// The line without its numbers.
fn key(line: &str) -> String {
    let mut key = String::new();
    for c in line.chars().take(KEY) {
        if !c.is_ascii_digit() {
            key.push(c);
        } else if !key.ends_with('#') {
            key.push('#');
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_logged_a_few_times_a_minute_and_then_counted() {
        let mut repeats = Repeats::new();
        let mut logged = |n: u64, now_ms| repeats.admit(&format!("the tracer lost {n} events"), now_ms);
        let first: Vec<_> = (0..1000).filter_map(|n| logged(n, n)).collect();
        assert_eq!(first.len(), OF_A_KIND as usize);
        assert_eq!(first[5], "the tracer lost 5 events");
        assert_eq!(logged(1000, WINDOW_MS - 1), None);
        let next = logged(7, WINDOW_MS).unwrap();
        assert_eq!(next, "the tracer lost 7 events (995 more of the kind were left out before this line)");
        assert_eq!(logged(8, WINDOW_MS + 1).unwrap(), "the tracer lost 8 events");
    }

    #[test]
    fn another_kind_is_logged_beside_it_and_all_kinds_together_are_bounded() {
        let mut repeats = Repeats::new();
        (0..100).for_each(|_| drop(repeats.admit("one", 0)));
        assert_eq!(repeats.admit("two", 0).as_deref(), Some("two"));
        let names = (0..100_000u32).map(|n| {
            format!(
                "cannot open \"{}\"",
                n.to_string().replace('0', "o").replace('1', "l").replace(|c: char| c.is_ascii_digit(), "x")
            )
        });
        let logged = names.filter_map(|line| repeats.admit(&line, 1)).count();
        assert!(logged < OF_ALL as usize, "{logged}");
        assert!(repeats.kinds.len() <= KINDS);
        assert!(repeats.admit("two", WINDOW_MS).is_some());
    }
}

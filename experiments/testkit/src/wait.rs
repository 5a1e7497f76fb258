//! Waits for a condition, never for a time.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Far longer than any wait: only a failing test waits this long.
pub const BOUND: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(5);

/// The result of a condition: `bool`, or an `Option` or a `Result` whose value the waiting test gets.
pub trait Condition {
    /// The value for the waiting test.
    type Found;

    /// The value if the condition holds; otherwise its state, for the error message.
    ///
    /// # Errors
    /// While it does not hold.
    fn check(self) -> Result<Self::Found, String>;
}

impl Condition for bool {
    type Found = ();

    fn check(self) -> Result<(), String> {
        if self { Ok(()) } else { Err(String::new()) }
    }
}

impl<T> Condition for Option<T> {
    type Found = T;

    fn check(self) -> Result<T, String> {
        self.ok_or_else(String::new)
    }
}

impl<T, E: Display> Condition for Result<T, E> {
    type Found = T;

    fn check(self) -> Result<T, String> {
        self.map_err(|state| format!("; at last: {state}"))
    }
}

/// Polls until the condition holds, and returns its value.
///
/// # Panics
/// After [`BOUND`], with `what` and the last state of the condition.
#[track_caller]
pub fn wait_for<C: Condition>(what: &str, condition: impl FnMut() -> C) -> C::Found {
    wait_at_most(BOUND, what, condition)
}

/// The same with another bound, for operations that take minutes.
///
/// # Panics
/// After `bound`.
#[track_caller]
#[expect(clippy::panic, reason = "test code")]
pub fn wait_at_most<C: Condition>(bound: Duration, what: &str, mut condition: impl FnMut() -> C) -> C::Found {
    let end = Instant::now() + bound;
    loop {
        match condition().check() {
            Ok(found) => return found,
            Err(state) if Instant::now() >= end => panic!("waited {bound:?} in vain for {what}{state}"),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

/// Sets a flag when dropped, so that threads that run until then also end if a test fails.
#[derive(Debug)]
pub struct RaiseOnDrop<'a>(pub &'a AtomicBool);

impl Drop for RaiseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(wait: impl FnOnce() + std::panic::UnwindSafe) -> String {
        *std::panic::catch_unwind(wait).unwrap_err().downcast::<String>().unwrap()
    }

    #[test]
    fn it_polls_until_the_condition_holds_and_returns_its_value() {
        let mut asked = 0;
        wait_for("the third time", || {
            asked += 1;
            asked == 3
        });
        assert_eq!(asked, 3);
        assert_eq!(wait_for("a value", || Some(7)), 7);
        assert_eq!(wait_for("a value", || Ok::<_, String>(8)), 8);
    }

    #[test]
    fn an_error_names_the_condition_and_its_last_state() {
        let none = || wait_at_most(Duration::ZERO, "the disk", || false);
        assert_eq!(message(none), "waited 0ns in vain for the disk");
        let empty = || wait_at_most(Duration::ZERO, "the disk", || Err::<(), _>("it has 3 readers"));
        assert_eq!(message(empty), "waited 0ns in vain for the disk; at last: it has 3 readers");
    }
}

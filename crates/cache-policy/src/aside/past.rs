//! What the mount saved and cost over the last busy minutes. Pure.

use std::time::Duration;

use super::Window;

/// What is so long ago counts half. Only busy time passes: what the day's work gained is not forgotten by the night's backup.
const HALF_LIFE: Duration = Duration::from_secs(600);

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Past {
    saved_us: f64,
    spent_us: f64,
    /// The mean memory that compression saved, in bytes, and the weight of what it was made of.
    gained: (f64, f64),
}

impl Past {
    /// Adds a busy window.
    pub fn add(&mut self, window: &Window) {
        let kept = 0.5_f64.powf(window.length().as_secs_f64() / HALF_LIFE.as_secs_f64());
        self.saved_us = self.saved_us * kept + window.saved_us();
        self.spent_us = self.spent_us * kept + window.spent_us();
        let (mean, weight) = (self.gained.0, self.gained.1 * kept);
        self.gained = ((mean * weight + window.gained() as f64) / (weight + 1.0), weight + 1.0);
    }

    /// True if requests cost more than hits saved.
    pub fn loses(&self) -> bool {
        self.saved_us < self.spent_us
    }

    /// Memory that compression saved, on average; in bytes, negative if the files took more.
    pub fn gained(&self) -> i64 {
        self.gained.0 as i64
    }
}

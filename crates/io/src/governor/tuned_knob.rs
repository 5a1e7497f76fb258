//! A knob that the governor may change.

/// A value becomes at most so many times smaller in one change.
const MOST_AT_ONCE: f64 = 8.0;

/// A setting that throttles writers, in whole steps.
#[derive(Debug, Clone, PartialEq)]
pub struct TunedKnob {
    /// The table's name.
    pub name: &'static str,
    /// The device that it belongs to; empty for a setting of the machine.
    pub target: String,
    /// Its value at the start. The governor never sets a higher one.
    pub start: u64,
    /// Its present value.
    pub now: u64,
    /// The lowest value that the governor sets.
    pub floor: u64,
    /// Its values are multiples of this.
    pub unit: u64,
    /// The shortest window in which a change can show, in seconds.
    pub window_s: f64,
}

impl TunedKnob {
    /// Half of its value, or less where reads take `times` as long as they should, down to an eighth at once; `None` at the floor.
    pub fn lower(&self, times: f64) -> Option<u64> {
        let part = (self.now as f64 / times.clamp(2.0, MOST_AT_ONCE)) as u64;
        let value = (part / self.unit * self.unit).max(self.floor);
        (value < self.now).then_some(value)
    }

    /// Whether it is above its floor.
    pub fn can_lower(&self) -> bool {
        self.now > self.floor
    }

    /// Its value plus an eighth of the start, or one unit; `None` at the start.
    pub fn higher(&self) -> Option<u64> {
        let step = (self.start / 8 / self.unit * self.unit).max(self.unit);
        let value = (self.now + step).min(self.start);
        (value > self.now).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knob(start: u64, now: u64, floor: u64, unit: u64) -> TunedKnob {
        TunedKnob { name: "queue.nr_requests", target: "sda".into(), start, now, floor, unit, window_s: 1.0 }
    }

    #[test]
    fn down_is_fast_and_up_is_slow() {
        let mut depth = knob(10, 10, 2, 1);
        let mut values = Vec::new();
        while let Some(value) = depth.lower(1.0) {
            depth.now = value;
            values.push(value);
        }
        assert_eq!(values, [5, 2]);
        assert_eq!(depth.higher(), Some(3));
        depth.now = 10;
        assert_eq!(depth.higher(), None);
    }

    #[test]
    fn the_worse_reads_are_the_further_it_goes_down() {
        let size = knob(1280, 1280, 64, 4);
        let to = [1.5, 2.0, 3.0, 5.0, 40.0].map(|times| size.lower(times));
        assert_eq!(to, [640, 640, 424, 256, 160].map(Some));
    }

    #[test]
    fn values_are_multiples_and_within_bounds() {
        let size = knob(1280, 100, 64, 4);
        assert_eq!((size.lower(2.0), size.higher()), (Some(64), Some(260)));
        assert_eq!(knob(1280, 64, 64, 4).lower(2.0), None);
        assert_eq!(knob(1280, 1276, 64, 4).higher(), Some(1280));
    }
}

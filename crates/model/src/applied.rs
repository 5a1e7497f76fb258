//! The plan as applied, in a file between `eke up` and what follows it.

use serde::{Deserialize, Serialize};

use crate::config::SwapSettings;
use crate::step::Plan;

/// What `eke up` leaves for the agent and for `eke status`: the plan as applied.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Applied {
    /// Seconds since 1970.
    pub unix_s: u64,
    /// The applied plans.
    pub plans: Vec<Plan>,
    /// Limits from the command line; they bind the agent, too.
    pub bounds: Bounds,
}

/// Limits given to `eke up` on its command line, beyond the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Bounds {
    /// The pool's largest share of RAM in percent.
    pub pool_percent: Option<u32>,
    /// Whether a size was given; then the agent adds no device.
    pub fixed_size: bool,
    /// Throttle writers while reads starve, whatever the configuration says.
    pub govern_io: bool,
    /// Reads are slow here, so the governor runs if the configuration leaves it to the measurement.
    pub governor: bool,
    /// Launches wait for the disk here, so prefetch runs if the configuration leaves it to the measurement.
    pub prefetch: bool,
}

impl Bounds {
    /// The settings, narrowed by these limits.
    pub fn bind(&self, settings: &SwapSettings) -> SwapSettings {
        let pool_percent = self.pool_percent.map_or(settings.pool_percent, |p| p.min(settings.pool_percent));
        SwapSettings { pool_percent, grow: settings.grow && !self.fixed_size, ..settings.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_the_command_line_bind() {
        let settings = SwapSettings { pool_percent: 50, grow: true, ..SwapSettings::default() };
        let bound = |pool_percent, fixed_size| {
            let s = Bounds { pool_percent, fixed_size, ..Bounds::default() }.bind(&settings);
            (s.pool_percent, s.grow)
        };
        assert_eq!(
            [bound(None, false), bound(Some(20), false), bound(Some(80), true)],
            [(50, true), (20, true), (50, false)]
        );
    }
}

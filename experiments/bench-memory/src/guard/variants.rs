//! What is compared, and the loads. Pure.

use eke_results::report::{Role, Variant};

/// Who keeps the machine usable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guarding {
    /// The kernel's OOM killer.
    Kernel,
    /// The same with MGLRU's `min_ttl_ms`.
    MinTtl,
    /// earlyoom as Debian ships it.
    Earlyoom,
    /// eke's guard.
    Eke,
    /// The same once more: the difference is the noise.
    EkeAgain,
}

impl Guarding {
    /// In the order of the table.
    pub const ALL: [Self; 5] = [Self::Kernel, Self::MinTtl, Self::Earlyoom, Self::Eke, Self::EkeAgain];

    /// Its name in rows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::MinTtl => "min_ttl_ms",
            Self::Earlyoom => "earlyoom",
            Self::Eke => "eke",
            Self::EkeAgain => eke_results::again!("eke"),
        }
    }

    /// Whether eke's guard is on.
    pub fn is_eke(self) -> bool {
        matches!(self, Self::Eke | Self::EkeAgain)
    }

    /// For the report.
    pub fn variant(self) -> Variant {
        let (role, set_up) = match self {
            Self::Kernel => (Role::Baseline, "the kernel's OOM killer alone"),
            Self::MinTtl => (Role::Peer, "MGLRU with min_ttl_ms = 1000"),
            Self::Earlyoom => (Role::Peer, "earlyoom with the arguments of Debian's package"),
            Self::Eke => (Role::Ours, "eke's guard at its defaults"),
            Self::EkeAgain => (Role::Ours, "the same again: the difference is the noise"),
        };
        Variant { name: self.name().into(), role, set_up: set_up.into() }
    }
}

/// What takes the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// One program that grows to eight times RAM, 3 to 1.
    Leak,
    /// The same with data that does not compress.
    Incompressible,
    /// 24 programs at once, each in a session of its own.
    Crowd,
    /// A browser that opens a tab every second.
    Tabs,
    /// 24 compilers of one build at once.
    Build,
    /// A program as large as RAM, 3 to 1: it fits and must not be ended.
    Fits,
}

impl Load {
    /// In the order of the table.
    pub const ALL: [Self; 6] =
        [Self::Leak, Self::Incompressible, Self::Crowd, Self::Tabs, Self::Build, Self::Fits];

    /// Its name in rows, and in the script.
    pub fn name(self) -> &'static str {
        match self {
            Self::Leak => "leak",
            Self::Incompressible => "incompressible",
            Self::Crowd => "crowd",
            Self::Tabs => "tabs",
            Self::Build => "build",
            Self::Fits => "fits",
        }
    }
}

#[cfg(test)]
mod tests {
    use eke_results::report::again::first_of;

    use super::*;

    #[test]
    fn the_arm_that_is_measured_again_is_the_noise_of_eke() {
        assert_eq!(first_of(Guarding::EkeAgain.name()), Some(Guarding::Eke.name()));
    }
}

//! Settings: shipped defaults, then the user's files, key by key.
//!
//! Texts come in, with the names they are to be called by in errors; which files there are is the caller's business.

use std::marker::PhantomData;

use serde::{Deserialize, Deserializer, de};

/// The shipped defaults, commented: also the reference of all keys.
pub const DEFAULT_TOML: &str = include_str!("default.toml");

/// A text of settings and what to call it.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The file's path, or whatever tells the user where to look.
    pub name: &'a str,
    /// Its content.
    pub text: &'a str,
}

/// A wrong key or value: `eke.toml:3: ...` with what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}:{line}: {message}")]
pub struct ConfigError {
    /// The source's name.
    pub name: String,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong there, and the valid ones.
    pub message: String,
}

/// All settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// Compressed swap.
    pub swap: SwapSettings,
    /// What is read before it is asked for.
    pub prefetch: PrefetchSettings,
    /// Latency of disks.
    pub io: IoSettings,
    /// The agent.
    pub agent: AgentSettings,
}

/// Which compressed swap to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackendChoice {
    /// By the kind of swap disk.
    #[default]
    Auto,
    /// A compressed block device in RAM.
    Zram,
    /// A compressed cache in front of a swap disk.
    Zswap,
}

/// What to do with compressed swap that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExistingChoice {
    /// Keep it, set the knobs around it.
    #[default]
    Adopt,
    /// Swap it off while eke is up.
    Replace,
    /// Do nothing at all.
    Leave,
}

macro_rules! settings {
    ($(#[$doc:meta])* $name:ident / $partial:ident { $($(#[$field_doc:meta])* $field:ident: $ty:ty => $partial_ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        pub struct $name { $($(#[$field_doc])* pub $field: $ty,)* }

        #[derive(Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        struct $partial { $($field: Option<$partial_ty>,)* }

        impl $partial {
            fn overlay(self, onto: &mut $name) {
                $(if let Some(value) = self.$field { onto.$field = value.into(); })*
            }
        }
    };
}

settings! {
    /// `[swap]`; `default.toml` says what each key means.
    SwapSettings / PartialSwap {
        /// Which back end.
        backend: BackendChoice => BackendChoice,
        /// `auto` or a name of the kernel's.
        algorithm: String => String,
        /// Percent of RAM that the pool may take.
        pool_percent: u32 => Within<10, 90>,
        /// Budget for a page's way back, 99 of 100, in microseconds.
        load_p99_us: u32 => Within<1, 100_000>,
        /// The traffic that the CPU budget is about, pages a second each way.
        pages_per_second: u32 => Within<1, 1_000_000>,
        /// Percent of all CPUs at that traffic.
        cpu_percent: u32 => Within<1, 100>,
        /// Compressed swap of others.
        existing: ExistingChoice => ExistingChoice,
        /// May a second device be added.
        grow: bool => bool,
        /// May pages be recompressed.
        recompress: bool => bool,
        /// A block device for writeback, or empty.
        writeback_device: String => String,
        /// Its wear budget in MiB a day.
        writeback_mib_per_day: u32 => Within<0, 1_048_576>,
        /// Maintain on battery, too.
        on_battery: bool => bool,
    }
}

settings! {
    /// `[prefetch]`.
    PrefetchSettings / PartialPrefetch {
        /// Learn, predict and read before at all.
        enabled: bool => bool,
        /// Read before a program starts, by prediction.
        ahead: bool => bool,
        /// Read what is missing at the moment of a start.
        at_exec: bool => bool,
        /// Percent of the available memory that may be filled ahead.
        memory_percent: u32 => Within<1, 90>,
        /// Read ahead on battery, too.
        on_battery: bool => bool,
    }
}

settings! {
    /// `[io]`.
    IoSettings / PartialIo {
        /// Hold writers back when reads starve.
        govern: bool => bool,
        /// Milliseconds within which reads should be answered; 0: by the kind of disk.
        read_target_ms: u32 => Within<0, 60_000>,
    }
}

settings! {
    /// `[agent]`.
    AgentSettings / PartialAgent {
        /// Seconds between two samples.
        tick_s: u32 => Within<1, 3_600>,
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Partial {
    swap: PartialSwap,
    prefetch: PartialPrefetch,
    io: PartialIo,
    agent: PartialAgent,
}

/// An integer between both ends, refused with them in the message.
#[derive(Debug)]
struct Within<const LOW: u32, const HIGH: u32>(u32);

impl<const LOW: u32, const HIGH: u32> From<Within<LOW, HIGH>> for u32 {
    fn from(within: Within<LOW, HIGH>) -> Self {
        within.0
    }
}

impl<'de, const LOW: u32, const HIGH: u32> Deserialize<'de> for Within<LOW, HIGH> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<const LOW: u32, const HIGH: u32>(PhantomData<()>);
        impl<const LOW: u32, const HIGH: u32> de::Visitor<'_> for Visitor<LOW, HIGH> {
            type Value = Within<LOW, HIGH>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "a whole number from {LOW} to {HIGH}")
            }
            fn visit_i64<E: de::Error>(self, v: i64) -> Result<Self::Value, E> {
                match u32::try_from(v) {
                    Ok(v) if (LOW..=HIGH).contains(&v) => Ok(Within(v)),
                    _ => Err(E::invalid_value(de::Unexpected::Signed(v), &self)),
                }
            }
        }
        deserializer.deserialize_i64(Visitor(PhantomData))
    }
}

impl Settings {
    /// The shipped defaults with `sources` laid over them in order.
    ///
    /// # Errors
    /// The first unknown key or bad value, with its source, its line and the valid ones.
    pub fn from_sources(sources: &[Source<'_>]) -> Result<Self, ConfigError> {
        let mut settings = Self::default();
        let shipped = Source { name: "default.toml", text: DEFAULT_TOML };
        for source in std::iter::once(&shipped).chain(sources) {
            let partial = parse(source)?;
            partial.swap.overlay(&mut settings.swap);
            partial.prefetch.overlay(&mut settings.prefetch);
            partial.io.overlay(&mut settings.io);
            partial.agent.overlay(&mut settings.agent);
        }
        Ok(settings)
    }
}

fn parse(source: &Source<'_>) -> Result<Partial, ConfigError> {
    toml::from_str(source.text).map_err(|e| ConfigError {
        name: source.name.to_owned(),
        line: line_of(source.text, e.span().map_or(0, |s| s.start)),
        message: e.message().replace('\n', " "),
    })
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes().iter().take(offset).filter(|b| **b == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Settings::from_sources(&[Source { name: "eke.toml", text }]).unwrap_err().to_string()
    }

    #[test]
    fn defaults_are_complete_and_valid() {
        let s = Settings::from_sources(&[]).unwrap();
        assert_eq!((s.swap.pool_percent, s.swap.load_p99_us, s.agent.tick_s), (80, 100, 10));
        assert_eq!(s.swap.algorithm, "auto");
        assert!(s.swap.grow && s.swap.recompress && !s.swap.on_battery);
        assert!(!s.io.govern && s.io.read_target_ms == 0);
        assert!(s.prefetch.ahead && s.prefetch.at_exec && !s.prefetch.on_battery);
    }

    #[test]
    fn later_sources_win_key_by_key() {
        let a = Source { name: "a", text: "[swap]\npool_percent = 60\nalgorithm = \"zstd\"\n" };
        let b = Source { name: "b", text: "[swap]\npool_percent = 70\n" };
        let s = Settings::from_sources(&[a, b]).unwrap();
        assert_eq!((s.swap.pool_percent, s.swap.algorithm.as_str()), (70, "zstd"));
    }

    #[test]
    fn a_wrong_key_names_file_line_and_valid_ones() {
        let message = refused("# mine\n[swap]\npool_precent = 60\n");
        assert!(
            message.starts_with("eke.toml:3: unknown field `pool_precent`, expected one of"),
            "{message}"
        );
        assert!(message.contains("`pool_percent`"), "{message}");
    }

    #[test]
    fn a_bad_value_names_the_range() {
        let message = refused("[swap]\npool_percent = 95\n");
        assert_eq!(message, "eke.toml:2: invalid value: integer `95`, expected a whole number from 10 to 90");
        let message = refused("[swap]\nbackend = \"zcache\"\n");
        assert!(message.contains("expected one of `auto`, `zram`, `zswap`"), "{message}");
    }

    #[test]
    fn broken_toml_is_an_error_with_its_line() {
        assert!(refused("[swap]\n\npool_percent = = 3\n").starts_with("eke.toml:3: "));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_settings_or_a_refusal(text in "(?s).{0,80}") {
            let _ = Settings::from_sources(&[Source { name: "x", text: &text }]);
        }
    }
}

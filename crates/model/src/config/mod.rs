//! Settings: shipped defaults, then the user's files, key by key.
//!
//! The caller finds and reads the files; this module gets each text with a name for its errors. `values`: how values are read.

mod values;

use serde::{Deserialize, Deserializer, de};

use values::{AutoOr, Section, Within};

/// The shipped defaults, commented: also the reference of all keys.
pub const DEFAULT_TOML: &str = include_str!("../default.toml");

/// The text of one settings file, and the name that errors give it.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The file's path, or another name by which the user finds it.
    pub name: &'a str,
    /// Its content.
    pub text: &'a str,
}

/// A wrong key or value, with its line and what is valid: `eke.toml:3: ...`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}:{line}: {message}")]
pub struct ConfigError {
    /// The source's name.
    pub name: String,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong there, and which keys or values are valid.
    pub message: String,
}

/// All settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// Compressed swap.
    pub swap: SwapSettings,
    /// Reading files ahead of launches.
    pub prefetch: PrefetchSettings,
    /// Latency of disks.
    pub io: IoSettings,
    /// What to do when memory ends.
    pub guard: GuardSettings,
    /// The agent.
    pub agent: AgentSettings,
}

/// Which compressed swap to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackendChoice {
    /// Depends on the kind of swap disk.
    #[default]
    Auto,
    /// A compressed block device in RAM.
    Zram,
    /// A compressed cache in front of a swap disk.
    Zswap,
}

/// What to do with compressed swap that exists already.
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

/// Whether something runs while eke is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Enabled {
    /// Where it gains, and nobody else does it.
    #[default]
    Auto,
    /// In any case.
    On,
    /// Never.
    Off,
}

impl<'de> Deserialize<'de> for Enabled {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Enabled;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "`auto`, `on` or `off`")
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Self::Value, E> {
                match v {
                    "auto" => Ok(Enabled::Auto),
                    "on" => Ok(Enabled::On),
                    "off" => Ok(Enabled::Off),
                    _ => Err(E::invalid_value(de::Unexpected::Str(v), &self)),
                }
            }
            // as settings files had it before
            fn visit_bool<E: de::Error>(self, v: bool) -> Result<Self::Value, E> {
                Ok(if v { Enabled::On } else { Enabled::Off })
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// A value as a settings file has it.
trait AsWritten: std::fmt::Debug {
    fn as_written(&self) -> String {
        format!("{self:?}")
    }
}

impl AsWritten for u32 {}
impl AsWritten for bool {}
impl AsWritten for String {}
impl AsWritten for Vec<String> {}
impl AsWritten for BackendChoice {}
impl AsWritten for ExistingChoice {}
impl AsWritten for Enabled {
    fn as_written(&self) -> String {
        format!("\"{}\"", format!("{self:?}").to_lowercase())
    }
}
impl AsWritten for Option<u32> {
    fn as_written(&self) -> String {
        self.map_or_else(|| "\"auto\"".to_owned(), |number| number.to_string())
    }
}

macro_rules! settings {
    ($(#[$doc:meta])* $name:ident / $partial:ident { $($(#[$field_doc:meta])* $field:ident: $ty:ty => $partial_ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        pub struct $name { $($(#[$field_doc])* pub $field: $ty,)* }

        #[derive(Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        struct $partial { $($field: Option<$partial_ty>,)* }

        impl $name {
            /// Each key with its value as text.
            fn values(&self) -> Vec<(&'static str, String)> {
                vec![$((stringify!($field), self.$field.as_written()),)*]
            }
        }

        impl $partial {
            fn overlay(self, onto: &mut $name) {
                $(if let Some(value) = self.$field { onto.$field = value.into(); })*
            }
        }
    };
}

settings! {
    /// `[swap]`; `default.toml` documents each key.
    SwapSettings / PartialSwap {
        /// Which back end.
        backend: BackendChoice => BackendChoice,
        /// `auto`, or the kernel's name of an algorithm.
        algorithm: String => String,
        /// The largest share of RAM for the pool, in percent.
        pool_percent: u32 => Within<10, 90>,
        /// Latency budget: the 99th percentile of a page's load, in microseconds. `None`: by the disk.
        load_p99_us: Option<u32> => AutoOr<1, 100_000>,
        /// Traffic for the CPU budget: pages per second, in and as many out. `None`: by the RAM.
        pages_per_second: Option<u32> => AutoOr<1, 1_000_000>,
        /// CPU budget: share of all CPUs at that traffic, in percent.
        cpu_percent: u32 => Within<1, 100>,
        /// What to do with compressed swap that something else set up.
        existing: ExistingChoice => ExistingChoice,
        /// Whether the agent may add another zram device.
        grow: bool => bool,
        /// Whether the dictionary is trained anew when the data has changed.
        retrain: bool => bool,
        /// Whether the agent may recompress pages.
        recompress: bool => bool,
        /// Whether the multi-generational LRU is switched on.
        lru_gen: bool => bool,
        /// Whether the agent swaps idle pages out before memory is short.
        proactive: bool => bool,
        /// A block device for writeback; empty if none.
        writeback_device: String => String,
        /// A directory for a file for writeback instead; empty if none.
        writeback_directory: String => String,
        /// The size of that file, in MiB.
        writeback_file_mib: u32 => Within<16, 1_048_576>,
        /// Whether device or file may be written without encryption where the kernel has none.
        writeback_unencrypted: bool => bool,
        /// The wear budget of the device or of the file's disk, in MiB per day.
        writeback_mib_per_day: u32 => Within<0, 1_048_576>,
        /// Whether maintenance runs on battery.
        on_battery: bool => bool,
    }
}

settings! {
    /// `[prefetch]`.
    PrefetchSettings / PartialPrefetch {
        /// Whether to learn, predict and read at all.
        enabled: Enabled => Enabled,
        /// Read files ahead of predicted launches.
        ahead: bool => bool,
        /// Read missing files at the moment of a launch.
        at_exec: bool => bool,
        /// The largest share of available memory to fill ahead, in percent.
        memory_percent: u32 => Within<1, 90>,
        /// Whether to read ahead on battery.
        on_battery: bool => bool,
        /// The share of starts that are left alone to measure what the others gain, in percent.
        control_percent: u32 => Within<0, 50>,
    }
}

settings! {
    /// `[io]`.
    IoSettings / PartialIo {
        /// Whether to throttle writers while reads starve.
        govern: Enabled => Enabled,
        /// Target latency of reads in milliseconds; 0 selects it by the kind of disk.
        read_target_ms: u32 => Within<0, 60_000>,
    }
}

settings! {
    /// `[guard]`.
    GuardSettings / PartialGuard {
        /// Whether the agent slows, stops and ends the program that takes all memory.
        enabled: Enabled => Enabled,
        /// Programs that it never touches, by the file name of their executable.
        protect: Vec<String> => Vec<String>,
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
    swap: Section<PartialSwap>,
    prefetch: Section<PartialPrefetch>,
    io: Section<PartialIo>,
    guard: Section<PartialGuard>,
    agent: Section<PartialAgent>,
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
            partial.swap.0.overlay(&mut settings.swap);
            partial.prefetch.0.overlay(&mut settings.prefetch);
            partial.io.0.overlay(&mut settings.io);
            partial.guard.0.overlay(&mut settings.guard);
            partial.agent.0.overlay(&mut settings.agent);
        }
        Ok(settings)
    }

    /// The keys that differ from the shipped defaults, as `swap.pool_percent`, with their values; texts have quotation
    /// marks.
    pub fn changed(&self) -> Vec<(String, String)> {
        let shipped = Self::from_sources(&[]).unwrap_or_default();
        let pairs = self.values().into_iter().zip(shipped.values());
        pairs.filter(|(own, shipped)| own != shipped).map(|(own, _)| own).collect()
    }

    fn values(&self) -> Vec<(String, String)> {
        let parts = [
            ("swap", self.swap.values()),
            ("prefetch", self.prefetch.values()),
            ("io", self.io.values()),
            ("guard", self.guard.values()),
            ("agent", self.agent.values()),
        ];
        let named = |(part, values): (&str, Vec<(&str, String)>)| {
            values.into_iter().map(|(key, value)| (format!("{part}.{key}"), value)).collect::<Vec<_>>()
        };
        parts.into_iter().flat_map(named).collect()
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
        assert_eq!((s.swap.pool_percent, s.swap.load_p99_us, s.agent.tick_s), (80, None, 10));
        assert_eq!(s.swap.algorithm, "auto");
        assert!(s.swap.grow && s.swap.recompress && !s.swap.on_battery);
        assert_eq!((s.io.govern, s.io.read_target_ms), (Enabled::Auto, 0));
        assert!(s.prefetch.ahead && s.prefetch.at_exec && !s.prefetch.on_battery);
    }

    #[test]
    fn only_changed_keys_are_listed() {
        assert_eq!(Settings::from_sources(&[]).unwrap().changed(), []);
        let text =
            "[swap]\npool_percent = 70\nalgorithm = \"zstd\"\n[io]\ngovern = true\n[agent]\ntick_s = 10\n";
        let changed = Settings::from_sources(&[Source { name: "a", text }]).unwrap().changed();
        let expected = [("swap.algorithm", "\"zstd\""), ("swap.pool_percent", "70"), ("io.govern", "\"on\"")];
        assert_eq!(changed, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }

    #[test]
    fn a_budget_is_listed_as_it_is_written() {
        let text = "[swap]\nload_p99_us = 300\n";
        let changed = Settings::from_sources(&[Source { name: "a", text }]).unwrap().changed();
        assert_eq!(changed, [("swap.load_p99_us".to_owned(), "300".to_owned())]);
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
        let budget = |value: &str| refused(&format!("[swap]\nload_p99_us = {value}\n"));
        let expected = "expected `auto` or a whole number from 1 to 100000";
        assert_eq!(budget("0"), format!("eke.toml:2: invalid value: integer `0`, {expected}"));
        assert_eq!(budget("\"fast\""), format!("eke.toml:2: invalid value: string \"fast\", {expected}"));
        assert!(budget("1.5").ends_with(expected), "{}", budget("1.5"));
        let message = refused("[swap]\nbackend = \"zcache\"\n");
        assert!(message.contains("expected one of `auto`, `zram`, `zswap`"), "{message}");
    }

    #[test]
    fn a_section_is_one_table() {
        let expected = "expected a section, such as [swap], with a value for each key";
        for text in ["[[swap]]\npool_percent = 70\n", "swap = 3\n", "swap = []\n"] {
            let message = refused(text);
            assert!(message.starts_with("eke.toml:1: ") && message.ends_with(expected), "{message}");
        }
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

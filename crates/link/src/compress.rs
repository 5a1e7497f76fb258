//! Does compression pay? Pure: from the bytes and CPU time of a real X session, with and without.
//!
//! A session is as fast as the slowest of the link and the two CPUs: the time of a MB is max(1 / link, CPU here, CPU there). Compression
//! shortens the first and lengthens the others, so it pays if the link is slower than the codec.

use serde::Serialize;

/// One run of a session.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Session {
    /// Bytes that its programs sent and received.
    pub raw_bytes: u64,
    /// Bytes on the link.
    pub wire_bytes: u64,
    /// CPU seconds of ssh on this machine.
    pub here_cpu_s: Option<f64>,
    /// CPU seconds of sshd on the far end.
    pub there_cpu_s: Option<f64>,
}

impl Session {
    /// CPU seconds per MB of the end that needs more; `None` if neither is known.
    fn cpu_per_mb(&self) -> Option<f64> {
        let most = self.here_cpu_s.into_iter().chain(self.there_cpu_s).reduce(f64::max)?;
        Some(most / (self.raw_bytes as f64 / 1e6).max(1e-9))
    }
}

/// The effect of compression on a session.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Compression {
    /// Compressed bytes for each raw byte.
    pub factor: f64,
    /// MB/s that the slower end can compress or decompress, encryption included.
    pub codec_mb_per_s: f64,
    /// MB/s of the link.
    pub link_mb_per_s: f64,
    /// The speedup; below 1 it is a slowdown.
    pub times: f64,
    /// Is that enough for a setting?
    pub is_advised: bool,
}

/// A smaller session does not suffice.
pub const LEAST_BYTES: u64 = 1_000_000;
/// The least speedup for a setting.
const ADVISED_AT: f64 = 1.10;

/// Decides for a link of `link_mb_per_s`.
///
/// # Errors
/// Why it cannot be decided, as a sentence.
pub fn judge(plain: &Session, compressed: &Session, link_mb_per_s: f64) -> Result<Compression, String> {
    let least = plain.raw_bytes.min(compressed.raw_bytes);
    if least < LEAST_BYTES {
        return Err(format!(
            "the session moved {:.1} MB, but at least {} are needed: use the program meanwhile, or name one that draws more",
            least as f64 / 1e6,
            LEAST_BYTES / 1_000_000
        ));
    }
    let unknown = || "no end shows the CPU time of its ssh".to_owned();
    let (cpu, cpu_compressed) =
        (plain.cpu_per_mb().ok_or_else(unknown)?, compressed.cpu_per_mb().ok_or_else(unknown)?);
    let factor = compressed.wire_bytes as f64 / compressed.raw_bytes as f64;
    let link = 1.0 / link_mb_per_s.max(1e-9);
    let times = link.max(cpu) / (link * factor).max(cpu_compressed);
    Ok(Compression {
        factor,
        codec_mb_per_s: 1.0 / cpu_compressed.max(1e-9),
        link_mb_per_s,
        times,
        is_advised: times >= ADVISED_AT,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(wire: u64, here: f64, there: f64) -> Session {
        Session { raw_bytes: 10_000_000, wire_bytes: wire, here_cpu_s: Some(here), there_cpu_s: Some(there) }
    }

    #[test]
    fn a_link_slower_than_the_codec_gains_and_a_fast_one_does_not() {
        // 20 ms/MB for the codec, 2 to 1
        let (plain, compressed) = (session(10_000_000, 0.03, 0.02), session(5_000_000, 0.03, 0.2));
        let slow = judge(&plain, &compressed, 11.5).unwrap();
        assert!(slow.is_advised && (slow.times - 2.0).abs() < 0.01, "{slow:?}");
        assert!((slow.factor - 0.5).abs() < 1e-9 && (slow.codec_mb_per_s - 50.0).abs() < 1e-6);
        let fast = judge(&plain, &compressed, 117.0).unwrap();
        assert!(!fast.is_advised && fast.times < 0.5, "{fast:?}");
    }

    #[test]
    fn a_session_without_enough_data_is_not_judged() {
        let small = Session { raw_bytes: 20_000, ..session(0, 0.1, 0.1) };
        assert!(judge(&small, &small, 10.0).unwrap_err().contains("0.0 MB"));
        let dark = Session { here_cpu_s: None, there_cpu_s: None, ..session(1, 0.0, 0.0) };
        assert!(judge(&session(1, 0.1, 0.1), &dark, 10.0).unwrap_err().contains("CPU time"));
    }

    proptest::proptest! {
        #[test]
        fn never_advised_where_it_gains_nothing(
            wire in 1u64..20_000_000, cpu in 0.0f64..1.0, codec in 0.0f64..3.0, link in 0.01f64..10_000.0,
        ) {
            let found = judge(&session(10_000_000, cpu, 0.0), &session(wire, cpu + codec, 0.0), link).unwrap();
            if found.factor >= 1.0 {
                proptest::prop_assert!(!found.is_advised);
            }
            proptest::prop_assert!(found.times.is_finite());
        }
    }
}

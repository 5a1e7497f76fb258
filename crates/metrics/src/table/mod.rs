//! The rows, by subject.

mod agent;
mod cache;
mod disks;
mod guard;
mod machine;
mod prefetch;
mod swap;

use crate::metric::Metric;

/// A subject and its rows.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    /// The heading.
    pub title: &'static str,
    /// The metrics, in order.
    pub metrics: &'static [Metric],
}

/// Every metric.
pub const TABLE: [Subject; 7] = [
    Subject { title: "The machine", metrics: &machine::METRICS },
    Subject { title: "Compressed swap", metrics: &swap::METRICS },
    Subject { title: "The guard", metrics: &guard::METRICS },
    Subject { title: "Prefetch", metrics: &prefetch::METRICS },
    Subject { title: "The disks", metrics: &disks::METRICS },
    Subject { title: "The mounted caches", metrics: &cache::METRICS },
    Subject { title: "eke itself", metrics: &agent::METRICS },
];

/// Every metric in order.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    TABLE.iter().flat_map(|subject| subject.metrics)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::metric::Kind;
    use crate::text::tests::full;

    /// The rules are those of Prometheus' "Metric and label naming" and of the OpenMetrics specification.
    #[test]
    fn names_follow_the_conventions() {
        let mut seen = BTreeSet::new();
        for metric in all() {
            let name = metric.name;
            assert!(seen.insert(name), "{name} is there twice");
            assert!(name.starts_with("eke_"), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'), "{name}");
            assert!(["", "bytes", "seconds", "ratio"].contains(&metric.unit), "{name}: {}", metric.unit);
            assert!(metric.unit.is_empty() || name.ends_with(&format!("_{}", metric.unit)), "{name}");
            for reserved in ["_total", "_info", "_count", "_sum", "_bucket", "_created"] {
                assert!(!name.ends_with(reserved), "{name}");
            }
            assert!(metric.kind != Kind::Info || metric.unit.is_empty(), "{name}");
        }
    }

    #[test]
    fn each_has_a_sentence_that_needs_no_escape() {
        for metric in all() {
            assert!(metric.help.ends_with('.') && metric.help.len() > 20, "{}: {}", metric.name, metric.help);
            assert!(!metric.help.contains(['\\', '\n', '"', '|']), "{}", metric.name);
        }
    }

    #[test]
    fn each_comes_with_the_labels_that_it_names() {
        let reading = full();
        for metric in all() {
            let samples = (metric.get)(&reading);
            assert!(!samples.is_empty(), "{} has nothing of a machine that has everything", metric.name);
            for sample in samples {
                let mut labels: Vec<&str> = sample.labels.iter().map(|l| l.0).collect();
                if sample.part == "_bucket" {
                    assert_eq!(labels.pop(), Some("le"), "{}", metric.name);
                }
                assert_eq!(labels, metric.labels, "{}", metric.name);
                assert_eq!(sample.part.is_empty(), metric.kind != Kind::Histogram, "{}", metric.name);
            }
        }
    }
}

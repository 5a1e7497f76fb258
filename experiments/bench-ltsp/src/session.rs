//! What a client does: its session of documents, and its script. Pure.

use std::path::PathBuf;

use eke_bench_desktop::session::{Act, Ballast, Spec};
use eke_bench_memory::guest::SLOWER;
use eke_bench_memory::guest::script::LIBRARY;
use eke_model::units::Bytes;

const DESKTOP: &str = include_str!("guest/desktop.sh");
/// The viewer: what the study used is based on it.
pub const VIEWER: &str = "xpdf";
/// Pages turned in each document.
pub const PAGES: u32 = 4;
/// The longest that a page may take on a real CPU, in seconds.
const PATIENCE_S: f64 = 10.0;
/// The compression ratio of the ballast's pages.
const BALLAST_RATIO: f64 = 2.5;
/// RAM for the kernel, systemd, a screen and a document or two, by trial; the rest is ballast.
const WITHOUT_BALLAST_MIB: u32 = 160;
/// How long a run may take on the host's clock.
pub const LIMIT_MINUTES: u64 = 25;

/// What the desktop of a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// `eke up` with a document open, for [`crate::plan::Means::Eke`]'s kept measurement.
    Measure,
    /// The session, then a load beside a login.
    Session,
}

/// Documents are opened, leafed through, and each second time the first one is brought to the front.
#[must_use]
pub fn spec(memory_mib: u32, documents: &[PathBuf]) -> Spec {
    let acts = (0..documents.len()).flat_map(|document| {
        let back = (document > 0).then_some(Act::Switch { document: 0 });
        [Act::Open { document }, Act::Browse { document, pages: PAGES, back: false }].into_iter().chain(back)
    });
    Spec {
        screen: (1024, 768),
        viewer: VIEWER.into(),
        documents: documents.to_vec(),
        ballast: Ballast { size: ballast(memory_mib), ratio: BALLAST_RATIO },
        merge_same_pages: false,
        acts: acts.collect(),
        patience_s: PATIENCE_S * SLOWER,
        expected: Vec::new(),
    }
}

/// The session while eke measures: one document, which stays open.
#[must_use]
pub fn measuring(documents: &[PathBuf]) -> Spec {
    let acts = vec![Act::Open { document: 0 }, Act::Rest { ms: 3_600_000 }];
    Spec { acts, ballast: Ballast { size: Bytes(0), ratio: 1.0 }, ..spec(0, documents) }
}

/// The rest of a desktop: larger clients have larger ones, so that all of them are short of memory after a few documents.
#[must_use]
pub fn ballast(memory_mib: u32) -> Bytes {
    Bytes::mib(memory_mib.saturating_sub(WITHOUT_BALLAST_MIB).into())
}

/// The script of the desktop's stand-in.
#[must_use]
pub fn script(task: Task) -> String {
    let task = match task {
        Task::Measure => "measure",
        Task::Session => "session_and_load",
    };
    format!("{LIBRARY}\n{DESKTOP}\ndesktop {task}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_the_scripts() {
        for task in [Task::Measure, Task::Session] {
            let checked = std::process::Command::new("sh").args(["-n", "-c", &script(task)]).status();
            assert!(checked.unwrap().success(), "{task:?}");
        }
    }

    #[test]
    fn the_first_document_comes_back_after_each_other() {
        let spec = spec(256, &["/a".into(), "/b".into()]);
        assert_eq!(spec.acts[4], Act::Switch { document: 0 });
        assert_eq!((spec.acts.len(), spec.ballast.size), (5, Bytes::mib(96)));
        assert_eq!(ballast(124), Bytes(0));
        assert_eq!(measuring(&spec.documents).acts.len(), 2);
    }
}

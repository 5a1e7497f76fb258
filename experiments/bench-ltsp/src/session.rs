//! What a client does: its session of documents, and its script. Pure.

use std::path::PathBuf;
use std::time::Duration;

use eke_bench_desktop::session::{Act, Ballast, Spec};
use eke_bench_memory::experiment::{BALLAST_RATIO, PATIENCE_S};
use eke_bench_memory::guest::SLOWER;
use eke_bench_memory::guest::script::LIBRARY;
use eke_model::units::Bytes;

const DESKTOP: &str = include_str!("guest/desktop.sh");
/// The viewer: what the study used is based on it.
pub const VIEWER: &str = "xpdf";
/// Pages turned in each document.
pub const PAGES: u32 = 4;
/// RAM for the kernel, systemd, a screen and a document or two, by trial; the rest is ballast.
const WITHOUT_BALLAST_MIB: u32 = 160;
/// How long a run may take on the host's clock, with one client and for each further one, which shares the host's CPUs.
const LIMIT: Duration = Duration::from_secs(25 * 60);
const LIMIT_OF_FURTHER: Duration = Duration::from_secs(15 * 60);

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

/// The rest of a desktop: larger clients have larger ones, so that all of them are short of memory after a few documents.
#[must_use]
pub fn ballast(memory_mib: u32) -> Bytes {
    Bytes::mib(memory_mib.saturating_sub(WITHOUT_BALLAST_MIB).into())
}

/// How long a run with this many clients may take on the host's clock.
#[must_use]
pub fn limit(clients: usize) -> Duration {
    LIMIT + LIMIT_OF_FURTHER * clients.saturating_sub(1) as u32
}

/// The script of the desktop's stand-in.
#[must_use]
pub fn script() -> String {
    format!("{LIBRARY}\n{DESKTOP}\ndesktop\n")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::process::Command;

    use eke_testkit::wait::wait_for;

    use super::*;

    /// Stands for eke's stressor: it names its process and stays until somebody ends it.
    const STRESSOR: &str = "#!/bin/sh\necho $$ >\"${0%/*}/pid\"\nexec sleep 600\n";
    /// A machine whose minute is three readings of its clock, and which waits for the stressor meanwhile. `$1` has the stressor.
    const MACHINE: &str = "PATH=$1:$PATH; pid=$1/pid; times=$1/times\nmkdir() { :; }\npidof() { :; }\n\
        cut() { echo x >>\"$times\"; echo $((40 * $(wc -l <\"$times\"))); }\n\
        sleep() { [ \"$1\" = 1 ] || for _ in $(seq 500); do [ -s \"$pid\" ] && return; command sleep 0.02; done; }\n";

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a program of the test's own")]
    fn nothing_is_left_of_the_load() {
        let dir = tempfile::tempdir().unwrap();
        let stressor = dir.path().join("eke");
        std::fs::write(&stressor, STRESSOR).unwrap();
        std::fs::set_permissions(&stressor, std::fs::Permissions::from_mode(0o755)).unwrap();
        let text = format!("{LIBRARY}\n{DESKTOP}\n{MACHINE}\nload\n");
        let output = Command::new("sh").args(["-c", &text, "sh"]).arg(dir.path()).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let pid = std::fs::read_to_string(dir.path().join("pid")).unwrap();
        let process = Path::new("/proc").join(pid.trim());
        let is_gone = || std::fs::read_to_string(process.join("cmdline")).unwrap_or_default().is_empty();
        let ended = std::panic::catch_unwind(|| wait_for("the end of the stressor", is_gone));
        let _ = Command::new("kill").args(["-9", pid.trim()]).status();
        assert!(ended.is_ok(), "the stressor is still there");
        assert_eq!(said, "@eke-guest load begins\n@eke-guest stressor survived\n@eke-guest load ends\n");
    }

    #[test]
    fn each_further_client_makes_a_run_longer() {
        assert_eq!((limit(1).as_secs(), limit(2).as_secs()), (25 * 60, 40 * 60));
    }

    #[test]
    fn a_shell_takes_the_script() {
        let checked = std::process::Command::new("sh").args(["-n", "-c", &script()]).status();
        assert!(checked.unwrap().success());
    }

    #[test]
    fn the_first_document_comes_back_after_each_other() {
        let spec = spec(256, &["/a".into(), "/b".into()]);
        assert_eq!(spec.acts[4], Act::Switch { document: 0 });
        assert_eq!((spec.acts.len(), spec.ballast.size), (5, Bytes::mib(96)));
        assert_eq!(ballast(124), Bytes(0));
    }
}

//! eke's mount on a node, controlled by its own command as a user does.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use eke_apply::state::make_dir;
use eke_bench_core::Environment;
use eke_bench_core::fault::on;
use eke_bench_core::test_image::{Scratch, mount_point};
use eke_bench_web::server_box::ServerBox;
use serde_json::Value;

use crate::error::Result;
use crate::hosts::Host;
use crate::net::{Net, output};
use crate::remote_disk::unmount_all;

/// How long the command may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the cache of a node, or of all nodes, did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tiers {
    /// Bytes of reads that the node's own store had.
    pub from_store: u64,
    /// Bytes of reads that the shared tier had.
    pub from_shared: u64,
    /// Bytes read from the origin's disk.
    pub from_backing: u64,
    /// Blocks that came from the shared tier.
    pub hits: u64,
    /// Blocks that it did not have.
    pub misses: u64,
    /// Blocks that came too late.
    pub late: u64,
    /// Blocks that could not be asked for, or were not: the engine failed, or the breaker was open.
    pub failed: u64,
    /// Blocks that were not as they were offered.
    pub refused: u64,
    /// Blocks offered.
    pub offered: u64,
    /// Blocks not offered.
    pub not_offered: u64,
    /// Bytes that the store holds.
    pub held: u64,
    /// Bytes of files that these are.
    pub raw: u64,
}

impl Tiers {
    /// From `eke cache status --json` of one mount; `None` if it has no worker now.
    pub fn parse(text: &str) -> Option<Self> {
        let status: Value = serde_json::from_str(text).ok()?;
        let worker = status.pointer("/caches/0/details/worker").filter(|w| w.is_object())?;
        let of = |name: &str| worker.pointer(name).and_then(Value::as_u64).unwrap_or(0);
        Some(Self {
            from_store: of("/tier/from_store"),
            from_shared: of("/shared/from_shared"),
            from_backing: of("/tier/from_backing"),
            hits: of("/shared/hits"),
            misses: of("/shared/misses"),
            late: of("/shared/late"),
            failed: of("/shared/failed") + of("/shared/paused"),
            refused: of("/shared/refused"),
            offered: of("/shared/offered"),
            not_offered: of("/shared/not_offered"),
            held: of("/store/held"),
            raw: of("/store/raw"),
        })
    }

    /// Both, by this function.
    #[must_use]
    pub fn with(self, other: Self, by: fn(u64, u64) -> u64) -> Self {
        Self {
            from_store: by(self.from_store, other.from_store),
            from_shared: by(self.from_shared, other.from_shared),
            from_backing: by(self.from_backing, other.from_backing),
            hits: by(self.hits, other.hits),
            misses: by(self.misses, other.misses),
            late: by(self.late, other.late),
            failed: by(self.failed, other.failed),
            refused: by(self.refused, other.refused),
            offered: by(self.offered, other.offered),
            not_offered: by(self.not_offered, other.not_offered),
            held: by(self.held, other.held),
            raw: by(self.raw, other.raw),
        }
    }
}

/// A mount. Drop detaches it; its processes belong to the box.
#[derive(Debug)]
pub struct Cache {
    scratch: Scratch,
    program: PathBuf,
}

impl Cache {
    /// Mounts eke's cache over `backing` on a host, with eke's defaults.
    ///
    /// # Errors
    /// The command fails.
    pub fn mount(
        environment: &Environment<'_>,
        net: &Net,
        server_box: &mut ServerBox,
        host: Host,
        backing: &Path,
        shared: Option<&str>,
    ) -> Result<Self> {
        let (root, program) = (environment.root, environment.installed("eke"));
        let scratch = Scratch::in_run(root)?;
        let dir = mount_point(scratch.path());
        make_dir(root, &dir, 0o755).map_err(on("make", &dir))?;
        let cache = Self { scratch, program };
        let mut command = net.on(host, &cache.program);
        // Each run begins without what an earlier one left.
        command.args(["cache", "mount", "--no-remember"]).arg(backing).arg(&dir);
        if let Some(url) = shared {
            command.arg("--shared").arg(url);
        }
        server_box.run(&command, PATIENCE)?;
        Ok(cache)
    }

    /// The content's directory.
    pub fn dir(&self) -> PathBuf {
        mount_point(self.scratch.path())
    }

    /// What it did so far; `None` if it does not answer.
    pub fn tiers(&self) -> Option<Tiers> {
        Tiers::parse(&self.status()?)
    }

    /// The whole status, as JSON.
    pub fn status(&self) -> Option<String> {
        let mut command = Command::new("timeout");
        command.arg("10").arg(&self.program).args(["cache", "status"]).arg(self.dir()).arg("--json");
        let output = command.output().ok().filter(|output| output.status.success())?;
        String::from_utf8(output.stdout).ok()
    }

    /// Unmounts it as a user does.
    ///
    /// # Errors
    /// The command fails. The mount is detached all the same.
    pub fn tear_down(self) -> Result<()> {
        let (program, dir) = (self.program.to_string_lossy(), self.dir());
        output("timeout", &["30", &program, "cache", "umount", &dir.to_string_lossy()])?;
        unmount_all(&dir)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_if_the_status_has_them() {
        let text = r#"{"caches":[{"details":{"worker":{"tier":{"from_store":5},"shared":{"hits":3,"failed":1,"paused":2}}}}]}"#;
        let expected = Tiers { from_store: 5, hits: 3, failed: 3, ..Tiers::default() };
        assert_eq!(Tiers::parse(text), Some(expected));
        assert_eq!(expected.with(expected, u64::wrapping_add).hits, 6);
        for text in [r#"{"caches":[{"details":{"worker":null}}]}"#, r#"{"caches":[]}"#, "[]", ""] {
            assert_eq!(Tiers::parse(text), None, "{text}");
        }
    }
}

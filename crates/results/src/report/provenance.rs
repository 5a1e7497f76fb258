//! Where a result comes from.

use eke_linux::Root;
use serde::{Deserialize, Serialize};

/// The code, the time, and the kernel's command line. All of it is text for a reader; nothing computes with it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Provenance {
    /// The version of eke.
    pub version: String,
    /// The commit of the source, with `-dirty` if files differed from it; `unknown` outside a repository.
    pub commit: String,
    /// When the experiment started, as HTTP writes it: `Tue, 24 Nov 2026 17:00:00 GMT`.
    pub started: String,
    /// `/proc/cmdline`: it can switch off mitigations, CPUs and memory.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kernel_command_line: String,
}

impl Provenance {
    /// With the command line of the kernel below `root`, empty if it cannot be read.
    pub fn new(version: &str, commit: &str, started: String, root: &Root) -> Self {
        Self {
            version: version.to_owned(),
            commit: commit.to_owned(),
            started,
            kernel_command_line: root.read("proc/cmdline").unwrap_or_default().trim().to_owned(),
        }
    }
}

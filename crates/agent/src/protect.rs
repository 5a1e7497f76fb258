//! Out of the OOM killer's and of reclaim's reach: the agent must work when memory is short, above all then.

use std::hint::black_box;

use eke_apply::write::write_value;
use eke_linux::Root;
use rustix::mm::{MlockAllFlags, mlockall};

/// Never chosen (proc_pid_oom_score_adj(5)).
const NEVER: &str = "-1000";
/// More stack than the loop uses; its pages are touched once and stay.
const STACK_BYTES: usize = 128 << 10;

/// Protects this process as far as it may; what it may not is logged with the reason.
pub fn this_process(root: &Root) {
    if let Err(e) = write_value(root, "process.oom_score_adj", "", NEVER) {
        tracing::warn!("The OOM killer can choose the agent: {e}.");
    }
    // ONFAULT (Linux 4.4): what is touched stays, what is never touched takes nothing.
    if let Err(e) = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT) {
        tracing::warn!(
            "The agent's memory can be reclaimed: it cannot be locked: {e} (it needs CAP_IPC_LOCK or a larger RLIMIT_MEMLOCK)."
        );
    }
    touch_stack();
}

#[inline(never)]
fn touch_stack() {
    black_box(&mut [0u8; STACK_BYTES]);
}

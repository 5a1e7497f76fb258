//! Runs libFuzzer on the target named by `EKE_FUZZ`.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

static RUN: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("EKE_FUZZ").unwrap_or_default();
    match eke_fuzzed::find(&name) {
        Some(target) => target.run,
        None => {
            eprintln!("EKE_FUZZ={name} is not a target; targets are:");
            eke_fuzzed::TARGETS.iter().for_each(|target| eprintln!("  {}", target.name));
            std::process::exit(2);
        }
    }
});

fuzz_target!(|data: &[u8]| RUN(data));

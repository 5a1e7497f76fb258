//! Common code of the tests of box and demo.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::ffi::OsString;

use eke_apply::zram;
use eke_linux::Root;
use eke_model::step::ZramSpec;
use eke_model::units::Bytes;
use eke_sandbox::stressor::StressorSpec;
use eke_testkit::wait::wait_for;

/// The parents of eke's groups, in both versions of cgroups.
const TOPS: [&str; 3] = ["memory/eke", "unified/eke", "eke"];

/// The memory stressor as a command.
#[allow(dead_code, reason = "not every test uses it")]
pub fn stressor(spec: &StressorSpec) -> Vec<OsString> {
    vec![env!("CARGO_BIN_EXE_eke-stressor").into(), serde_json::to_string(spec).unwrap().into()]
}

/// All groups of eke on this machine.
#[allow(dead_code, reason = "not every test uses it")]
pub fn groups() -> Vec<String> {
    let mut all: Vec<String> =
        TOPS.iter().flat_map(|t| Root::host().list(format!("sys/fs/cgroup/{t}")).unwrap()).collect();
    all.retain(|name| eke_linux::cgroup::name::owner(name).is_some());
    all
}

/// Waits for the box of that supervisor with so many processes.
#[allow(dead_code, reason = "not every test uses it")]
pub fn wait_for_box(supervisor: u32, processes: usize) -> String {
    let prefix = format!("box-{supervisor}-");
    wait_for("the box and its processes", || {
        let name = groups().into_iter().find(|name| name.starts_with(&prefix))?;
        let inside = |top: &&str| Root::host().read(format!("sys/fs/cgroup/{top}/{name}/cgroup.procs"));
        let members = TOPS.iter().find_map(|top| inside(top).ok())?;
        (members.lines().count() >= processes).then_some(name)
    })
}

/// A swap area for one test. Drop swaps it off and removes it.
pub struct ScratchSwap {
    path: std::path::PathBuf,
    zram: Option<String>,
}

impl ScratchSwap {
    /// On a new zram device, with the highest priority.
    #[allow(dead_code, reason = "not every test uses it")]
    pub fn zram(size: Bytes) -> Self {
        let root = Root::host();
        let name = zram::hot_add(&root).unwrap();
        let guard = Self { path: format!("/dev/{name}").into(), zram: Some(name.clone()) };
        let spec = ZramSpec { swap_priority: Some(32_000), ..ZramSpec::new("lz4", size) };
        zram::configure(&root, &name, &spec).unwrap();
        guard
    }

    /// On a file that has a swap header.
    #[allow(dead_code, reason = "not every test uses it")]
    pub fn file(path: &std::path::Path) -> Result<Self, String> {
        eke_apply::swap_area::swap_on(&Root::host(), &path.to_string_lossy(), Some(32_000), None)
            .map_err(|e| e.to_string())?;
        Ok(Self { path: path.to_owned(), zram: None })
    }
}

impl Drop for ScratchSwap {
    fn drop(&mut self) {
        let root = Root::host();
        let off = eke_apply::revert::swap_off(&root, &self.path.to_string_lossy());
        if let Some(name) = &self.zram {
            let removed = zram::remove(&root, name);
            assert!(removed.is_ok() || std::thread::panicking(), "{off:?} {removed:?}");
        }
    }
}

//! The programs of the farm, and which variants lack one.

use std::path::{Path, PathBuf};

use eke_bench_core::Environment;
use eke_bench_core::fault::Missing;

use crate::error::{Error, Result};
use crate::plan::Variant;

/// Where programs are installed.
const DIRS: [&str; 6] = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin", "/sbin", "/bin"];
/// The engines: both speak the same protocol.
const ENGINES: [(&str, &str); 2] = [("valkey-server", "valkey-cli"), ("redis-server", "redis-cli")];
/// eke's file server, and its program with the network.
const OWN: [&str; 2] = ["eke-cache", "eke-cache-shared"];

/// The path of an installed program.
pub fn find(name: &str) -> Option<PathBuf> {
    DIRS.iter().map(|dir| Path::new(dir).join(name)).find(|path| path.is_file())
}

/// The path of a program that the experiment needs.
///
/// # Errors
/// It is not installed.
pub fn need(name: &str, needs: &str, package: &str) -> Result<PathBuf> {
    find(name).ok_or_else(|| Missing::new(name, needs, package).into())
}

/// The engine's server and its client.
pub fn engine() -> Option<(PathBuf, PathBuf)> {
    ENGINES.iter().find_map(|(server, cli)| Some((find(server)?, find(cli)?)))
}

/// Checks what all variants need.
///
/// # Errors
/// A program is missing.
pub fn check() -> Result<()> {
    let all = [
        ("ip", "iproute2"),
        ("tc", "iproute2"),
        ("nsenter", "util-linux"),
        ("mke2fs", "e2fsprogs"),
        ("debugfs", "e2fsprogs"),
        ("nginx", "nginx"),
    ];
    all.into_iter()
        .try_for_each(|(program, package)| need(program, "this experiment needs", package).map(drop))
}

/// Checks what a variant needs.
///
/// # Errors
/// A program is missing.
pub fn check_variant(environment: &Environment<'_>, variant: Variant) -> Result<()> {
    let needs = format!("the variant \"{}\" needs", variant.name());
    if variant.mounts_the_disk() {
        need("nbdkit", &needs, "nbdkit")?;
        need("nbdfuse", &needs, "libnbd-bin")?;
    }
    if variant == Variant::Varnish {
        need("varnishd", &needs, "varnish")?;
    }
    if variant.is_shared() && engine().is_none() {
        return Err(Missing::new("redis-server", needs, "redis-server").into());
    }
    let own = &OWN[..if variant.is_shared() { 2 } else { usize::from(variant.uses_eke()) }];
    match own.iter().find(|name| !environment.program.with_file_name(name).is_file()) {
        Some(name) => {
            let beside = environment.program.display();
            Err(Error::Usage(format!("{name} is not beside {beside}; `make build` puts it there")))
        }
        None => Ok(()),
    }
}

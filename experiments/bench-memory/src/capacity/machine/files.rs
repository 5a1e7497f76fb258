//! The files of guests: QEMU and a kernel, programs and documents, on a disk image.

use std::path::{Path, PathBuf};

use eke_bench_core::Environment;
use eke_bench_desktop::session::{Act, Ballast, Spec};
use eke_vm::{Kit, fetch_package};

use super::machines::Small;
use super::{LIMIT, PAGES};
use crate::experiment::{BALLAST_RATIO, Error, Options, PATIENCE_S, installation};
use crate::guest::{self, GuestRun, Peer};

/// More than fit with any peer.
const MOST: usize = 24;
/// Programs beside the running one that go into the guest with it.
const BESIDE: [&str; 2] = ["eke", "eke-agent"];

pub(super) struct Files {
    pub kit: Kit,
    pub image: PathBuf,
    pub documents: Vec<PathBuf>,
    viewer: String,
}

impl Files {
    /// Finds everything, and makes the disk image unless it is in the cache.
    pub fn prepare(
        environment: &Environment<'_>,
        options: &Options,
        notes: &mut Vec<String>,
    ) -> Result<Self, Error> {
        let kit = kit(options.kernel_of.as_deref())?;
        let viewer = installation::viewer(options.viewer.as_deref())?;
        let choice = installation::choose(environment, options.documents.as_deref(), MOST)?;
        let own = own(&environment.program)?;
        let unknown = || Error::Viewer { name: viewer.clone(), known: Vec::new() };
        let mut parts = guest::parts(&viewer, &own).ok_or_else(unknown)?;
        let documents = choice.documents.iter().map(|d| parts.document(&d.path, &d.name)).collect();
        let (packages, lacking) = packages();
        environment.progress.print("Preparing the disk of the small machine.");
        let image = guest::ensure_image(environment.root, &kit, &parts, &packages, &environment.cache)?;
        notes.push(format!("The viewer is {viewer}. Documents: {}.", installation::names(&choice)));
        notes.extend(lacking);
        notes.extend(choice.notes);
        Ok(Self { kit, image, documents, viewer })
    }

    /// A run without eke's measurement.
    pub fn run(&self, machine: &Small, peer: &Peer) -> GuestRun {
        GuestRun {
            peer: peer.clone(),
            memory_mib: machine.memory_mib,
            spec: self.spec(machine),
            measured: None,
            timeout: LIMIT,
        }
    }

    fn spec(&self, machine: &Small) -> Spec {
        let each = |document| [Act::Open { document }, Act::Browse { document, pages: PAGES, back: false }];
        let spec = Spec {
            screen: (1024, 768),
            viewer: self.viewer.clone(),
            documents: self.documents.clone(),
            ballast: Ballast { size: machine.ballast, ratio: BALLAST_RATIO },
            merge_same_pages: false,
            acts: (0..self.documents.len()).flat_map(each).collect(),
            patience_s: PATIENCE_S,
            expected: Vec::new(),
        };
        guest::for_emulation(&spec, PAGES)
    }
}

/// Downloads missing parts. Nothing is installed for an experiment.
pub(crate) fn kit(kernel_of: Option<&str>) -> Result<Kit, Error> {
    let cache = eke_vm::default_cache();
    if let Some(suite) = kernel_of {
        return Kit::fetch_of(suite, &cache).map_err(machined);
    }
    match Kit::find(&cache) {
        Ok(kit) => Ok(kit),
        Err(missing) if missing.parts.iter().any(|part| part.is_installed()) => Err(machined(missing.into())),
        Err(_) => Kit::fetch(&cache).map_err(machined),
    }
}

fn machined(error: eke_vm::Error) -> Error {
    guest::Error::Machine(error).into()
}

pub(crate) fn own(program: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut own = vec![program.to_owned()];
    for name in BESIDE {
        let path = program.with_file_name(name);
        if !path.is_file() {
            return Err(Error::NoProgram { name, beside: program.to_owned() });
        }
        own.push(path);
    }
    Ok(own)
}

/// The packages, and a note for each that cannot be fetched.
fn packages() -> (Vec<PathBuf>, Vec<String>) {
    let cache = eke_vm::default_cache();
    let (mut there, mut notes) = (Vec::new(), Vec::new());
    for name in guest::packages() {
        match fetch_package(&cache, name) {
            Ok(files) => there.push(files),
            Err(e) => notes.push(format!(
                "The package {name} cannot be fetched, so its documented values are used: {e}."
            )),
        }
    }
    (there, notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_product_must_be_beside_the_program() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("eke-bench");
        let error = own(&program).unwrap_err().to_string();
        assert!(error.starts_with("eke is not beside ") && error.contains("make build"), "{error}");
    }
}

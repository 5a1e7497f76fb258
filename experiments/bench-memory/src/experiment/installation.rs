//! Programs and documents of an experiment, on their disk.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use eke_bench_core::Environment;
use eke_bench_core::test_image::{self, Parts, TestImage, TestImageSpec, Tree};
use eke_bench_desktop::desktop;
use eke_bench_desktop::documents::{self, Choice, Requirements};

use super::{Error, Options};

/// A mounted test image and its contents.
pub(super) struct Installation {
    pub image: TestImage,
    pub viewer: String,
    /// The documents' paths in the session.
    pub documents: Vec<PathBuf>,
}

/// Finds the viewer, chooses documents, makes the image (or takes it from the cache) and mounts it.
pub(super) fn set(
    environment: &Environment<'_>,
    options: &Options,
    documents: usize,
    notes: &mut Vec<String>,
) -> Result<Installation, Error> {
    let viewer = viewer(options.viewer.as_deref())?;
    let choice = choose(environment, options.documents.as_deref(), documents)?;
    let mut parts = parts(&viewer, &environment.program)?;
    let documents = choice.documents.iter().map(|d| parts.document(&d.path, &d.name)).collect();
    let image =
        test_image::ensure(environment.root, &Tree::of(&parts)?, &environment.cache, SystemTime::now())?;
    let spec = TestImageSpec { image, profile: options.disk.clone(), writable: false };
    let image = TestImage::prepare(environment.root, spec)?;
    notes.push(format!("The viewer is {viewer}. {}", on_which_disk(options.disk.as_deref())));
    notes.push(format!("Documents: {}.", names(&choice)));
    notes.extend(choice.notes);
    Ok(Installation { image, viewer, documents })
}

pub(crate) fn viewer(asked: Option<&str>) -> Result<String, Error> {
    let names = || desktop::viewers().iter().map(|v| v.name);
    match asked {
        Some(name) if names().any(|n| n == name) => Ok(name.to_owned()),
        Some(name) => Err(Error::Viewer { name: name.to_owned(), known: names().collect() }),
        None => {
            let here = |v: &&desktop::Viewer| desktop::find(v.programs).is_some();
            desktop::viewers()
                .iter()
                .find(here)
                .map(|v| v.name.to_owned())
                .ok_or_else(|| Error::NoViewer { known: names().collect() })
        }
    }
}

pub(crate) fn choose(
    environment: &Environment<'_>,
    own: Option<&Path>,
    count: usize,
) -> Result<Choice, Error> {
    let cache = environment.cache.join("documents");
    let found = match own {
        Some(place) => documents::own(place, &cache)?,
        None => documents::find(&documents::DIRECTORIES.map(PathBuf::from), &cache),
    };
    Ok(documents::choose(&found.documents, &Requirements::of_the_study(count))?)
}

fn parts(viewer: &str, program: &Path) -> Result<Parts, Error> {
    let needs = desktop::needs(viewer);
    let needs = needs.ok_or_else(|| Error::Viewer { name: viewer.to_owned(), known: Vec::new() })?;
    let mut programs: Vec<PathBuf> = needs.programs.iter().map(PathBuf::from).collect();
    programs.push(program.to_owned());
    Ok(Parts { programs, files: needs.files.iter().map(PathBuf::from).collect(), ..Parts::default() })
}

pub(crate) fn names(choice: &Choice) -> String {
    let one =
        |d: &documents::Document| format!("{} ({:.2} MB, {} pages)", d.name, d.bytes.0 as f64 / 1e6, d.pages);
    choice.documents.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn on_which_disk(profile: Option<&str>) -> String {
    match profile {
        Some(name) => {
            format!("Programs and documents are on the slow disk `{name}`, cold at the start of each run.")
        }
        None => {
            "Programs and documents are on this machine's own disk, cold at the start of each run.".to_owned()
        }
    }
}

//! The quickest machine of the fleet and its most telling steps, with a package of the programs that the tests use. All of it takes hours: `make field`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

use std::path::{Path, PathBuf};
use std::process::Command;

use eke_field::drive::{Laboratory, run};
use eke_field::image::Images;
use eke_field::machines::{self, Machine};
use eke_field::steps;
use eke_testkit::real::{lacking, no_program, skip};
use eke_vm::Policy;

const MACHINE: &str = "container";
const STEPS: &str = "quickest";

#[test]
fn the_package_refuses_politely_in_containers() {
    let policy = Policy::of_environment();
    let tree = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let recipe = tree.join("experiments/field");
    let read = |name: &str| std::fs::read_to_string(recipe.join(name)).unwrap();
    let mut machine =
        machines::select(&machines::parse(&read("machines.toml")).unwrap(), MACHINE).unwrap().remove(0);
    STEPS.clone_into(&mut machine.steps);
    let place = tree.join("target/field");
    let images = Images {
        place: place.join("images"),
        recipe: recipe.clone(),
        mirror: std::env::var("DEBIAN_MIRROR").unwrap_or_else(|_| "http://deb.debian.org/debian".to_owned()),
    };
    let packages = tempfile::tempdir().unwrap();
    let missing = cannot_run(policy)
        .or_else(|| made(&images, &machine).err())
        .or_else(|| package(tree, packages.path()));
    if let Some(why) = missing {
        assert!(!policy.require, "{why}");
        return skip("the_package_refuses_politely_in_containers", &why);
    }
    let laboratory =
        Laboratory { images, logs: place.join("test"), packages: vec![packages.path().to_owned()] };
    let steps = steps::parse(&read("steps.toml")).unwrap();
    let row = run(&laboratory, &machine, &steps, &mut |row| {
        if let Some(step) = row.steps.last() {
            eprintln!("{} {:?} ({:.0} s) {}", step.step, step.ending, step.seconds, step.reason);
        }
    });
    let row = row.unwrap();
    assert!(row.is_good(), "see {}: {row:#?}", laboratory.logs.display());
}

/// Why the machine cannot be made here.
fn cannot_run(policy: Policy) -> Option<String> {
    if policy.skip || !policy.fetch {
        return Some("EKE_VM permits no download of Debian's packages".to_owned());
    }
    if !cfg!(target_arch = "x86_64") {
        return Some("the package would be of another architecture than the machine".to_owned());
    }
    lacking(&["/usr/share/keyrings/debian-archive-keyring.gpg"])
        .or_else(|| no_program(&["mmdebstrap", "mke2fs", "strip", "dpkg-deb"]))
}

/// Makes QEMU and the machine's image.
fn made(images: &Images, machine: &Machine) -> Result<(), String> {
    let made = images.qemu("qemu-system-x86_64").and_then(|_| images.of(machine));
    made.map(drop).map_err(|e| format!("{e:#}"))
}

/// Makes the package; why that is not possible here.
fn package(tree: &Path, out: &Path) -> Option<String> {
    let programs = PathBuf::from(env!("CARGO_BIN_EXE_eke-field"));
    let mut command = Command::new(tree.join("packages/try"));
    let output = eke_testkit::program::output(command.arg(programs.parent().unwrap()).arg(out));
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    match output.status.code() {
        Some(0) => None,
        Some(77) => Some(said),
        _ => panic!("packages/try: {}: {said}", output.status),
    }
}

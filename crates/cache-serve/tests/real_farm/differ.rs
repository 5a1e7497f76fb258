//! Random changes by two nodes and below them, as close-to-open promises: what is opened after a change was closed has all of it.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use eke_testkit::wait::wait_for;

use crate::engine::Engine;
use crate::node::{CONTENT, Origin, cannot_run, shared};
use crate::serves::connected;

const SEEDS: [u64; 3] = [26, 27, 28];
const STEPS: u64 = 200;
/// In this step the engine is killed, and started again some steps later, empty.
const KILLED: u64 = 80;
const STARTED: u64 = 110;
const FILES: u64 = 6;

/// Numbers that depend on a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// Changes a file by one of several calls, and the copy of what it must have.
fn change(path: &Path, copy: &mut Vec<u8>, random: &mut Random, step: u64) {
    let open = |path: &Path| OpenOptions::new().write(true).open(path).unwrap();
    let bytes = CONTENT.of(step, random.below(1000));
    match random.below(5) {
        0 => {
            let (at, len) = (random.below(copy.len() as u64 + 1000), 1 + random.below(100_000) as usize);
            open(path).write_all_at(&bytes[..len], at).unwrap();
            copy.resize(copy.len().max(at as usize + len), 0);
            copy[at as usize..at as usize + len].copy_from_slice(&bytes[..len]);
        }
        1 => {
            let len = random.below(300_000);
            open(path).set_len(len).unwrap();
            copy.resize(len as usize, 0);
        }
        // Of the same length: only the times tell.
        2 => {
            let len = copy.len().min(bytes.len());
            open(path).write_all_at(&bytes[..len], 0).unwrap();
            copy[..len].copy_from_slice(&bytes[..len]);
        }
        3 => {
            let new = path.with_extension("new");
            fs::write(&new, &bytes).unwrap();
            fs::rename(&new, path).unwrap();
            copy.clone_from(&bytes);
        }
        _ => {
            fs::write(path, &bytes).unwrap();
            copy.clone_from(&bytes);
        }
    }
}

#[test]
fn two_nodes_and_a_plain_directory_show_the_same() {
    if cannot_run("two_nodes_and_a_plain_directory_show_the_same") {
        return;
    }
    SEEDS.into_iter().for_each(differ);
}

fn differ(seed: u64) {
    let (origin, mut engine) = (Origin::new(), Engine::start(&[]));
    let url = format!("redis://127.0.0.1:{}", engine.port);
    let nodes = [connected(&origin, &url), connected(&origin, &url)];
    let mut copies: Vec<Vec<u8>> = (0..FILES).map(|file| CONTENT.of(file, 0)).collect();
    let mut random = Random(seed);
    let hits = || nodes.iter().map(|node| shared(node).hits).sum::<u64>();
    let mut hits_before = 0;
    for step in 0..STEPS {
        if step == KILLED {
            engine.kill();
        } else if step == STARTED {
            engine.start_again();
            wait_for("connections again", || nodes.iter().all(|node| shared(node).connected == 6));
            hits_before = hits();
        }
        let file = random.below(FILES);
        let name = file.to_string();
        let places: [PathBuf; 3] =
            [nodes[0].place().join(&name), nodes[1].place().join(&name), origin.file(file)];
        change(&places[random.below(3) as usize], &mut copies[file as usize], &mut random, step);
        for file in [file, random.below(FILES)] {
            let node = &nodes[random.below(2) as usize];
            let copy = &copies[file as usize];
            let read = CONTENT.read(node, file);
            assert!(read == *copy, "seed {seed}, step {step}, file {file}, {} bytes", copy.len());
        }
        // Now and then long enough for the file's version to be shared.
        if random.below(8) == 0 {
            origin.settle();
            let (one, other) = (&nodes[random.below(2) as usize], &nodes[random.below(2) as usize]);
            for node in [one, one, other] {
                let is_same = CONTENT.read(node, file) == copies[file as usize];
                assert!(is_same, "seed {seed}, step {step}, file {file} again");
            }
        }
    }
    origin.settle();
    for node in &nodes {
        (0..FILES).for_each(|file| assert!(CONTENT.read(node, file) == copies[file as usize], "{file}"));
    }
    assert!(hits_before > 0 && hits() > hits_before, "seed {seed}: {hits_before} blocks, then {}", hits());
    assert!(nodes.iter().all(|node| shared(node).refused == 0));
}

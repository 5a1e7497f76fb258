//! The size of a store in a cgroup with little memory, on the real kernel.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test code")]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use eke_apply::cgroup;
use eke_cache_mounts::settings::Memory;
use eke_cache_serve::size::{Governor, Traffic};
use eke_cache_store::{FileId, Incompressible, Key, Store, StoreSpec};
use eke_linux::Root;
use eke_model::units::{Bytes, MIB};
use eke_testkit::real::{lacking, lock_machine, skip};

/// The role of this program when the test starts it again inside the cgroup.
const ROLE: &str = "EKE_TEST_SIZE_ROLE";
const GROUP: Bytes = Bytes::mib(96);
const STORE: Bytes = Bytes::mib(48);
const STRESSOR: Bytes = Bytes::mib(52);
const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn a_store_gives_memory_to_its_cgroup_and_takes_it_again() {
    const NAME: &str = "a_store_gives_memory_to_its_cgroup_and_takes_it_again";
    if let Ok(role) = std::env::var(ROLE) {
        return if role == "stressor" { stressor() } else { store() };
    }
    let place = cgroup::GroupParent::find(&Root::host());
    if let Some(why) = lacking(&[]).or_else(|| place.as_ref().err().map(ToString::to_string)) {
        return skip(NAME, &why);
    }
    let _machine = lock_machine();
    let group = cgroup::Group::make(&Root::host(), &place.unwrap(), "size").unwrap();
    group.limit(GROUP).unwrap();
    group.forbid_swap(GROUP).unwrap();

    let store = Actor::start(NAME, "store", &group);
    store.wait("fills up", |held| held >= STORE.0 * 9 / 10);
    let stressor = Actor::start(NAME, "stressor", &group);
    stressor.wait("has its memory", |has| has == STRESSOR.0);
    let low = store.wait("gives memory back", |held| held < STORE.0 - 12 * MIB);
    drop(stressor);
    store.wait("takes memory again", |held| held > low + 8 * MIB);
    assert_eq!(group.stats().unwrap().oom_kills, 0);
    drop(store);
    group.remove().unwrap();
}

/// This program again, in a role, in the cgroup. Drop kills it.
struct Actor {
    child: Child,
    reports: Receiver<u64>,
    role: &'static str,
}

impl Actor {
    fn start(test: &str, role: &'static str, group: &cgroup::Group) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        group.admit(child.id()).unwrap();
        // It waits for this line, so that all its memory is charged to the cgroup.
        child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        let (sender, reports) = channel();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        std::thread::spawn(move || {
            lines
                .map_while(Result::ok)
                .filter_map(|line| line.strip_prefix("now ")?.parse().ok())
                .try_for_each(|number| sender.send(number))
        });
        Self { child, reports, role }
    }

    /// Waits until a number that it reports fulfils the condition. Returns that number.
    fn wait(&self, what: &str, is_so: impl Fn(u64) -> bool) -> u64 {
        let (until, mut last) = (Instant::now() + PATIENCE, None);
        while Instant::now() < until {
            let Ok(now) = self.reports.recv_timeout(PATIENCE) else { break };
            last = Some(now);
            if is_so(now) {
                eprintln!("the {} {what}: {}", self.role, Bytes(now));
                return now;
            }
        }
        panic!("the {} never {what}; its last report: {last:?}", self.role);
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_for_start() {
    std::io::stdin().read_exact(&mut [0]).unwrap();
}

/// Takes its memory at 20 MiB a second, and keeps it.
fn stressor() {
    wait_for_start();
    let mut taken = vec![0u8; usize::try_from(STRESSOR.0).unwrap()];
    for (n, chunk) in taken.chunks_mut(1 << 20).enumerate() {
        chunk.fill(n as u8 | 1);
        std::thread::sleep(Duration::from_millis(50));
    }
    loop {
        eprintln!("now {}", std::hint::black_box(&taken).len());
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// A governed store that always gets more blocks than it has room for.
fn store() {
    wait_for_start();
    let governor = Governor::new(Memory::Bytes(STORE));
    let root = Root::host();
    let limit = governor.first(&root).unwrap();
    let spec = StoreSpec { incompressible: Incompressible::Keep, ..StoreSpec::for_cpus(limit, 1) };
    let store = Store::new(spec).unwrap();
    let began = Instant::now();
    let pause = |pause| {
        std::thread::sleep(pause);
        false
    };
    std::thread::scope(|scope| {
        scope.spawn(|| governor.run(&root, &store, Traffic::default, || began.elapsed(), pause));
        fill(&store);
    });
}

fn fill(store: &Store) {
    let mut scratch = store.scratch().unwrap();
    let mut block = vec![0u8; 64 << 10];
    let mut seed = 1u64;
    for number in 0u64.. {
        for word in block.chunks_exact_mut(8) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            word.copy_from_slice(&seed.to_le_bytes());
        }
        let ticket = store.ticket(Key::new(FileId(number % 1000), number));
        store.admit(&mut scratch, ticket, &block);
        std::thread::sleep(Duration::from_millis(1));
        if number % 50 == 0 {
            eprintln!("now {}", store.stats().held.0);
        }
    }
}

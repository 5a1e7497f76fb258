//! Shared by the tracing tests: a small file system, and a program on it whose launches are recorded.
#![allow(dead_code, reason = "no test uses all of it")]
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a failing test panics")]

use std::cell::Cell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use eke_linux::Root;
use eke_prefetch_model::learn::{Exec, LaunchId, Now, ProgramState, Settings};
use eke_prefetch_model::{Launch, PAGE_BYTES, Pages, Program, Touched};
use eke_prefetchd::trace::{Observation, TraceListener, TraceMethod, Tracer, Watch};
use tempfile::TempDir;

/// Longer than any test takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// Why this machine cannot run these tests.
pub fn lacking() -> Option<String> {
    let needs = ["/dev/loop-control", "/proc/self/mountinfo"];
    eke_testkit::real::lacking(&needs)
        .or_else(|| eke_testkit::real::no_program(&["mkfs.ext4", "mount", "umount", "dd", "ls", "sh"]))
}

/// A temporary ext4, unmounted and removed on drop.
#[derive(Debug)]
pub struct Disk {
    dir: TempDir,
    copies: Cell<u32>,
}

impl Disk {
    /// With a shell as `start`, 256 pages in `data`, and 400 files in `many`.
    pub fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let disk = Self { dir, copies: Cell::new(0) };
        std::fs::create_dir(disk.place()).unwrap();
        std::fs::create_dir(tools(&disk.place())).unwrap();
        for tool in ["cat", "dd", "ls"] {
            copy(&Path::new("/bin").join(tool), &tools(&disk.place()).join(tool));
        }
        std::fs::File::create(disk.image()).unwrap().set_len(64 << 20).unwrap();
        run("mkfs.ext4", &["-q".as_ref(), "-F".as_ref(), disk.image().as_ref()]);
        disk.mount();
        copy(Path::new("/bin/sh"), &disk.path("start"));
        let data: Vec<u8> = (0..256 * 4096u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        std::fs::write(disk.path("data"), data).unwrap();
        std::fs::create_dir(disk.path("many")).unwrap();
        (0..400).for_each(|n| {
            std::fs::write(disk.path(&format!("many/a file of a long name {n}")), b"x").unwrap()
        });
        disk.remount();
        disk
    }

    /// A sparse file of 50 GB.
    pub fn huge(&self) -> PathBuf {
        let path = self.path("huge");
        std::fs::File::create(&path).unwrap().set_len(50 << 30).unwrap();
        path
    }

    fn image(&self) -> PathBuf {
        self.dir.path().join(format!("image{}", self.copies.get()))
    }

    pub fn place(&self) -> PathBuf {
        self.dir.path().join("place")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.place().join(name)
    }

    /// Without inode read-ahead: up to 32 blocks around the root's inode would enter memory with the mount, some time later (`inode_readahead_blks`,
    /// Documentation/admin-guide/ext4.rst; 0 turns it off).
    fn mount(&self) {
        let options = "loop,inode_readahead_blks=0";
        run("mount", &["-o".as_ref(), options.as_ref(), self.image().as_ref(), self.place().as_ref()]);
    }

    /// Its current block device.
    pub fn device(&self) -> PathBuf {
        let mounts = eke_linux::parse::mountinfo::parse(&std::fs::read("/proc/self/mountinfo").unwrap());
        mounts.into_iter().find(|mount| mount.place == self.place()).map(|mount| mount.source).unwrap()
    }

    /// Remounts a copy, so that nothing of it is in memory: another process's mounts may keep the old file system.
    pub fn remount(&self) {
        rustix::fs::syncfs(std::fs::File::open(self.place()).unwrap()).unwrap();
        run("umount", &[self.place().as_ref()]);
        let before = self.image();
        self.copies.set(self.copies.get() + 1);
        std::fs::copy(&before, self.image()).unwrap();
        std::fs::remove_file(before).unwrap();
        self.mount();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let umount =
            || Command::new("umount").arg(self.place()).status().is_ok_and(|status| status.success());
        if !(0..50).any(|_| {
            umount() || {
                std::thread::sleep(Duration::from_millis(100));
                false
            }
        }) {
            _ = Command::new("umount").arg("-l").arg(self.place()).status();
        }
    }
}

/// cp(1) writes the file: if this process wrote it, a child of another test could inherit the descriptor, and the file could not be executed.
fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-L").args([from, to]).status().unwrap().success());
}

/// The tools of the scripts, beside the disk. Their launches are recorded.
fn tools(place: &Path) -> PathBuf {
    place.with_file_name("tools")
}

fn run(program: &str, args: &[&std::ffi::OsStr]) {
    let done = Command::new(program).args(args).output().unwrap();
    assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A watch that records launches of the test's programs only.
#[derive(Debug)]
pub struct Session {
    watch: Watch,
    events: Observed,
}

/// Observations so far, and the directory whose programs are recorded.
#[derive(Debug)]
struct Observed {
    place: PathBuf,
    observations: Vec<Observation>,
}

impl TraceListener for Observed {
    fn state_of(&mut self, program: &Program, _: &Exec) -> ProgramState {
        let is_ours = program.exe.starts_with(&self.place)
            || program.exe.starts_with(tools(&self.place))
            || std::env::current_exe().is_ok_and(|exe| exe == program.exe);
        let learned = if is_ours { 0 } else { u32::MAX };
        ProgramState { learned, ..ProgramState::default() }
    }

    fn observe(&mut self, observation: Observation) {
        self.observations.push(observation);
    }
}

impl Session {
    /// The quiet time is long, because this machine may be busy.
    pub fn new(method: TraceMethod, disk: &Disk) -> Self {
        Self::at(method, disk.place())
    }

    /// For a disk that another process has set up.
    pub fn at(method: TraceMethod, place: PathBuf) -> Self {
        Self::on(&Root::host(), method, place)
    }

    /// With other `/proc` and `/sys`.
    pub fn on(root: &Root, method: TraceMethod, place: PathBuf) -> Self {
        let quiet = Duration::from_secs(30);
        let settings =
            Settings { first: 100, every: u32::MAX >> 7, quiet, limit: PATIENCE, ..Settings::default() };
        let tracer = Tracer::start_by(root, method).unwrap();
        Self { watch: Watch::with(tracer, settings), events: Observed { place, observations: Vec::new() } }
    }

    pub fn poll(&mut self) {
        let now = || Now { mono: Duration::from_millis(eke_linux::read::monotonic_ms()), real_ns: 1 };
        self.watch.poll(Duration::from_millis(50), &now, &mut self.events);
    }

    /// Polls until `found` accepts an observation.
    pub fn until<T>(&mut self, what: &str, found: impl Fn(&Observation) -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(found) = self.events.observations.iter().find_map(&found) {
                return found;
            }
            assert!(began.elapsed() < PATIENCE, "never came: {what}; {:?}", self.events.observations);
            self.poll();
        }
    }

    /// The recorded launch of a shell on the disk that runs this script once recording has begun, together with the launches of what it starts.
    pub fn launch(&mut self, script: &str) -> Launch {
        let mut child = shell(&self.events.place, script);
        let pid = child.id();
        let id = self.until("the exec", |observation| begun(observation, pid));
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        let launch = self.finished(pid, id);
        assert!(eke_testkit::program::end_of(&mut child).success());
        launch
    }

    /// The finished launch of a process, united with those of what it started.
    pub fn finished(&mut self, pid: u32, id: LaunchId) -> Launch {
        let launch = self.launch_of("the launch", id);
        let more = self.started_by(pid, id);
        more.into_iter().fold(launch, |all, id| {
            let launch = self.launch_of("the launch of a child", id);
            with(all, launch)
        })
    }

    /// One finished launch.
    pub fn launch_of(&mut self, what: &str, id: LaunchId) -> Launch {
        self.until(what, |observation| finished(observation, id))
    }

    /// The other launches of a process and of what it started.
    fn started_by(&self, pid: u32, id: LaunchId) -> Vec<LaunchId> {
        let (mut pids, mut ids) = (vec![pid], Vec::new());
        for observation in &self.events.observations {
            let Observation::Exec(exec, begun) = observation else { continue };
            if pids.contains(&exec.parent) || pids.contains(&exec.pid) {
                pids.push(exec.pid);
                ids.extend(begun.filter(|begun| begun.0 > id.0));
            }
        }
        ids
    }

    pub fn learning(&self) -> usize {
        self.watch.learning()
    }

    /// The execs so far.
    pub fn execs(&self) -> impl Iterator<Item = &Exec> {
        self.events.observations.iter().filter_map(|observation| match observation {
            Observation::Exec(exec, _) => Some(exec),
            _ => None,
        })
    }

    /// Whether a loss was reported.
    pub fn has_lost(&self) -> bool {
        self.events.observations.iter().any(|observation| matches!(observation, Observation::Trouble(_)))
    }
}

/// Starts the shell on the disk, which first waits for a line.
pub fn shell(place: &Path, script: &str) -> Child {
    Command::new(place.join("start"))
        .args(["-c", &format!("read go; {script}")])
        .current_dir(place)
        .env("LC_ALL", "C")
        .env("PATH", format!("{}:/usr/bin:/bin", tools(place).display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn finished(observation: &Observation, id: LaunchId) -> Option<Launch> {
    match observation {
        Observation::Launch(finished) if finished.id == id => Some(finished.launch.clone()),
        _ => None,
    }
}

/// A launch with the files of another one.
fn with(mut all: Launch, launch: Launch) -> Launch {
    all.cold_bytes += launch.cold_bytes;
    for file in launch.set.files {
        match all.set.files.iter_mut().find(|known| known.path == file.path) {
            Some(known) => known.pages = known.pages.union(&file.pages),
            None => all.set.files.push(file),
        }
    }
    all
}

fn begun(observation: &Observation, pid: u32) -> Option<LaunchId> {
    match observation {
        Observation::Exec(exec, id) if exec.pid == pid => *id,
        _ => None,
    }
}

/// Reads these pages of a file.
pub fn read_pages(path: &Path, pages: &Pages) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::open(path).unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random).unwrap();
    for span in pages.spans() {
        let mut buffer = vec![0; usize::try_from(span.bytes()).unwrap()];
        file.read_at(&mut buffer, span.first * PAGE_BYTES).unwrap();
    }
}

/// A file of a launch.
pub fn touched<'a>(launch: &'a Launch, path: &Path) -> Option<&'a Touched> {
    launch.set.files.iter().find(|file| file.path == path)
}

/// Maps a file, requests the pages `requested.0..requested.1` with madvise(2), and touches a byte of each of `pages`.
pub fn map_and_touch(path: &Path, pages: &[usize], requested: Option<(usize, usize)>) {
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
    let file = std::fs::File::open(path).unwrap();
    let bytes = file.metadata().unwrap().len() as usize;
    #[expect(unsafe_code, reason = "mapped as programs map their libraries")]
    // SAFETY: the whole file is mapped, read within its bounds, and unmapped
    unsafe {
        let at = mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::PRIVATE, &file, 0).unwrap();
        if let Some((first, end)) = requested {
            let from = at.cast::<u8>().add(first * 4096).cast();
            madvise(from, (end - first) * 4096, Advice::WillNeed).unwrap();
        }
        for page in pages {
            std::ptr::read_volatile(at.cast::<u8>().add(page * 4096));
        }
        if let Some(mapped_file) = std::env::var_os("EKE_MAPPED") {
            std::fs::write(mapped_file, mapped(at as u64 / 4096, bytes.div_ceil(4096))).unwrap();
        }
        std::thread::sleep(Duration::from_millis(
            std::env::var("EKE_STAY_MS").ok().and_then(|ms| ms.parse().ok()).unwrap_or(0),
        ));
        munmap(at, bytes).unwrap();
    }
}

/// The mapped pages of this process in a range, one per line (bit 63, Documentation/admin-guide/mm/pagemap.rst).
fn mapped(first: u64, count: usize) -> String {
    use std::os::unix::fs::FileExt;
    let mut words = vec![0; count * 8];
    std::fs::File::open("/proc/self/pagemap").unwrap().read_exact_at(&mut words, first * 8).unwrap();
    let is_there = |word: &[u8]| word[7] & 0x80 != 0;
    words
        .chunks(8)
        .enumerate()
        .filter(|(_, word)| is_there(word))
        .map(|(page, _)| format!("{page}\n"))
        .collect()
}

/// The command of a process that maps a file of the disk and touches these pages: this test program itself.
pub fn mapper(disk: &Disk, name: &str, pages: &str, stay_ms: u32) -> String {
    format!(
        "EKE_MAP='{}' EKE_PAGES='{pages}' EKE_STAY_MS={stay_ms} '{}' --exact maps_on_request",
        disk.path(name).display(),
        std::env::current_exe().unwrap().display()
    )
}

/// The body of that process.
pub fn map_on_request() {
    let (Some(path), Ok(pages)) = (std::env::var_os("EKE_MAP"), std::env::var("EKE_PAGES")) else { return };
    let numbers = |text: &str| text.split(',').map(|page| page.parse().unwrap()).collect::<Vec<usize>>();
    let requested = std::env::var("EKE_REQUEST").ok().map(|requested| numbers(&requested));
    map_and_touch(
        Path::new(&path),
        &numbers(&pages),
        requested.map(|requested| (requested[0], requested[1])),
    );
}

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::JoinHandle;

use super::*;
use crate::Device;

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(60);

/// The mounts of one user: of this process's, or of another one as far as `SocketDirs` knows.
struct User {
    root: tempfile::TempDir,
    uid: u32,
}

impl User {
    fn new() -> Self {
        let (root, uid) = (tempfile::tempdir().unwrap(), rustix::process::geteuid().as_raw());
        std::fs::create_dir(root.path().join("run")).unwrap();
        Self { root, uid }
    }

    /// For a process of the same user.
    fn own(&self) -> SocketDirs {
        SocketDirs::new(self.root.path(), Some(self.root.path().join("run")), self.uid)
    }

    fn mount(&self, minor: u32) -> Mount {
        let device = Device { major: 0, minor };
        Mount { id: minor.into(), device, place: "/p".into(), aside: None, dir: "/d".into(), uid: self.uid }
    }

    fn path(&self, minor: u32) -> std::path::PathBuf {
        drop(self.own().make().unwrap());
        self.root.path().join(format!("run/eke/caches/0-{minor}"))
    }

    fn listen(&self, minor: u32) -> UnixListener {
        UnixListener::bind(self.path(minor)).unwrap()
    }

    /// Sends `answer` to one request.
    fn answer(&self, minor: u32, answer: &str) -> JoinHandle<()> {
        let (listener, answer) = (self.listen(minor), answer.to_owned());
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            BufReader::new(&stream).read_line(&mut String::new()).unwrap();
            let _ = stream.write_all(answer.as_bytes());
        })
    }
}

fn asked(dirs: &SocketDirs, mounts: &[Mount], within: Duration) -> Vec<Asked> {
    ask_all(dirs, &mounts.iter().collect::<Vec<_>>(), Request::Status, within)
}

const DONE: &str = "{\"answer\":\"done\"}\n";

/// Each supervisor waits until all have the request: if they were asked one after the other, none would answer.
#[test]
fn all_are_asked_before_one_answers() {
    const ALL: u32 = 20;
    let user = User::new();
    let all_asked = std::sync::Arc::new(std::sync::Barrier::new(ALL as usize));
    let supervisor = |minor| {
        let (listener, all_asked) = (user.listen(minor), std::sync::Arc::clone(&all_asked));
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            BufReader::new(&stream).read_line(&mut String::new()).unwrap();
            all_asked.wait();
            stream.write_all(DONE.as_bytes()).unwrap();
        })
    };
    let threads: Vec<_> = (0..ALL).map(supervisor).collect();
    let mounts: Vec<Mount> = (0..ALL).map(|minor| user.mount(minor)).collect();
    let answers = asked(&user.own(), &mounts, LONG);
    assert!(answers.iter().all(|a| matches!(a, Ok(Some(Response::Done)))), "{answers:?}");
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn silent_supervisors_are_reported_and_delay_no_answer() {
    let user = User::new();
    let silent: Vec<UnixListener> = (0..5).map(|minor| user.listen(minor)).collect();
    let good = user.answer(5, DONE);
    let mounts: Vec<Mount> = (0..=5).map(|minor| user.mount(minor)).collect();
    let answers = asked(&user.own(), &mounts, Duration::from_secs(2));
    assert!(matches!(answers[5], Ok(Some(Response::Done))), "{:?}", answers[5]);
    let late = |a: &Asked| matches!(a, Err(AskError::Answer(LineError::Late(_))));
    assert!(answers[..5].iter().all(late), "{answers:?}");
    good.join().unwrap();
    drop(silent);
}

/// A blocking connect(2) would wait for room in the queue for ever.
#[test]
fn a_supervisor_with_a_full_queue_is_not_waited_for() {
    let user = User::new();
    let path = user.path(1);
    let listener = UnixListener::bind(&path).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let waiting = UnixStream::connect(&path).unwrap();
    let answers = asked(&user.own(), &[user.mount(1)], LONG);
    assert!(
        matches!(&answers[0], Err(AskError::Connect(e)) if e.kind() == io::ErrorKind::WouldBlock),
        "{answers:?}"
    );
    drop(waiting);
}

#[test]
fn a_wrong_answer_is_an_error_and_a_dead_supervisor_is_none() {
    let user = User::new();
    let numbers = DONE.replace("}", ",\"n\":18446744073709551615}");
    let sent = ["nonsense\n", "", &"x".repeat(1 << 20), &numbers, "{\"answer\":\"done\"}\n{}\n"];
    let threads: Vec<_> = sent.iter().zip(0..).map(|(text, minor)| user.answer(minor, text)).collect();
    let mounts: Vec<Mount> = (0..=5).map(|minor| user.mount(minor)).collect();
    let answers = asked(&user.own(), &mounts, LONG);
    for (number, answer) in answers.iter().enumerate() {
        let is_right = match number {
            1 | 5 => matches!(answer, Ok(None)),
            2 => matches!(answer, Err(AskError::Answer(LineError::TooLong(_)))),
            _ => matches!(answer, Err(AskError::Answer(LineError::Nonsense { .. }))),
        };
        assert!(is_right, "{number}: {answer:?}");
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// A link could lead to another user's socket, or onto a file system that never answers.
#[test]
fn a_link_a_pipe_or_a_file_instead_of_a_socket_is_not_followed() {
    let user = User::new();
    let elsewhere = user.root.path().join("elsewhere");
    let listener = UnixListener::bind(&elsewhere).unwrap();
    listener.set_nonblocking(true).unwrap();
    std::os::unix::fs::symlink(&elsewhere, user.path(1)).unwrap();
    let answers = asked(&user.own(), &[user.mount(1)], LONG);
    assert!(!matches!(answers[0], Ok(Some(_))), "{answers:?}");
    assert!(listener.accept().is_err(), "it was connected to");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, user.path(2), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    drop(std::fs::OpenOptions::new().create_new(true).write(true).open(user.path(3)).unwrap());
    for minor in [2, 3] {
        assert!(matches!(asked(&user.own(), &[user.mount(minor)], LONG)[0], Ok(None)), "{minor}");
    }
}

#[test]
fn a_bounded_number_of_another_users_mounts_is_asked() {
    let user = User::new();
    let dirs = SocketDirs::new(user.root.path(), None, user.uid.wrapping_add(1));
    let mounts: Vec<Mount> = (0..100).map(|minor| user.mount(minor)).collect();
    let answers = asked(&dirs, &mounts, LONG);
    let not_asked = answers.iter().filter(|a| matches!(a, Err(AskError::NotAsked)));
    assert_eq!(not_asked.count(), 100 - MOST_OF_A_USER);
    assert!(answers[..MOST_OF_A_USER].iter().all(|a| matches!(a, Ok(None))), "{answers:?}");
}

const PLACES: [&str; 3] = ["run/user/65534", "run/user/65534/eke", "run/user/65534/eke/caches"];
const OTHER: u32 = 65_534;

/// How many socket directories of the user [`OTHER`] are found while a file system whose server never answers covers one of
/// [`PLACES`]. `None`: it cannot be mounted here.
fn found_under_a_silent_mount(place: &str) -> Option<Result<usize, std::sync::mpsc::RecvTimeoutError>> {
    use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
    use std::os::fd::AsRawFd;
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join(PLACES[2])).unwrap();
    for dir in PLACES {
        std::os::unix::fs::chown(root.path().join(dir), Some(OTHER), Some(OTHER)).ok()?;
    }
    let fuse = std::fs::OpenOptions::new().read(true).write(true).open("/dev/fuse").ok()?;
    let options =
        format!("fd={},rootmode=40700,user_id={OTHER},group_id={OTHER},allow_other", fuse.as_raw_fd());
    let options = std::ffi::CString::new(options).unwrap();
    let place = root.path().join(place);
    mount("hangs", &place, "fuse", MountFlags::NODEV | MountFlags::NOSUID, options.as_c_str()).ok()?;
    let (sender, receiver) = std::sync::mpsc::channel();
    let dirs = SocketDirs::new(root.path(), None, 0);
    std::thread::spawn(move || sender.send(dirs.of(OTHER).len()));
    let found = receiver.recv_timeout(LONG);
    unmount(&place, UnmountFlags::DETACH).unwrap();
    Some(found)
}

#[test]
fn a_hanging_file_system_in_the_way_is_not_entered() {
    for place in PLACES {
        match found_under_a_silent_mount(place) {
            None => {
                println!("skipped: a_hanging_file_system_in_the_way_is_not_entered: nothing can be mounted")
            }
            Some(found) => assert_eq!(found, Ok(0), "{place}"),
        }
    }
}

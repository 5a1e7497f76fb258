//! `eke-bench lab echo`: how long a line takes through a session and back.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use eke_present::exit::{Failure, Outcome, Status};
use eke_present::putln;
use rustix::mm::{MlockAllFlags, mlockall};

/// Between two lines.
const PAUSE: Duration = Duration::from_millis(100);
/// A line that does not come back is reported this often.
const REPORT: Duration = Duration::from_secs(1);

/// The verb. It ends when the command does.
pub fn run(command: &[String]) -> Outcome {
    // The measuring end must not wait for its own pages. Without the permission it may.
    let _ = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE);
    let failed = |e: std::io::Error| Failure::new(Status::Failed, format!("{}: {e}", command.join(" ")));
    let (program, arguments) = command.split_first().map_or(("", &[][..]), |(p, a)| (p.as_str(), a));
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let (Some(mut to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
        return Ok(Status::Failed);
    };
    let answers = lines(from);
    let (mut count, mut longest) = (0_u64, Duration::ZERO);
    loop {
        let sent = Instant::now();
        to.write_all(b"x\n").map_err(failed)?;
        loop {
            let answer = answers.recv_timeout(REPORT);
            // The login is not an echo.
            let late = count > 0 && sent.elapsed() > longest;
            match answer {
                Err(RecvTimeoutError::Disconnected) => return Ok(Status::Failed),
                _ if late => longest = sent.elapsed(),
                _ => {}
            }
            count += u64::from(answer.is_ok());
            if late || count == 1 {
                putln!("{}", serde_json::json!({ "count": count, "longest_s": longest.as_secs_f64() }));
            }
            if answer.is_ok() {
                break;
            }
        }
        std::thread::sleep(PAUSE);
    }
}

/// The lines that come back; the channel ends with them.
fn lines(from: ChildStdout) -> Receiver<()> {
    let (to, answers) = channel();
    std::thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = String::new();
        while from.read_line(&mut line).is_ok_and(|read| read > 0) && to.send(()).is_ok() {
            line.clear();
        }
    });
    answers
}

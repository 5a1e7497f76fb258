//! Signatures by `ssh-keygen -Y` (OpenSSH 8.2, PROTOCOL.sshsig): administrators have such keys already.

use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use eke_present::exit::{Failure, Outcome, Status};
use rustix::fs::{MemfdFlags, memfd_create};

/// Keeps a signature of other files from counting here.
const NAMESPACE: &str = "eke-launches";
/// Not from `PATH`: root runs it.
const PROGRAM: &str = "/usr/bin/ssh-keygen";

/// The signature of `text` by the key in `key`, as it follows the text. Asks for the key's passphrase on the terminal.
///
/// # Errors
/// There is no ssh-keygen, or what it says.
pub fn sign(text: &str, key: &Path) -> Outcome<String> {
    let mut command = Command::new(PROGRAM);
    command.args(["-Y", "sign", "-n", NAMESPACE, "-f"]).arg(key);
    let output = run(command, text)?;
    if !output.status.success() {
        return Err(said(format!("cannot sign with {}", key.display()), &output));
    }
    String::from_utf8(output.stdout).map_err(|_| Failure::new(Status::Failed, "ssh-keygen printed no text"))
}

/// The name in `signers` (ssh-keygen(1), ALLOWED SIGNERS) whose key signed `text`.
///
/// # Errors
/// There is no ssh-keygen, or nobody of these signed this text.
pub fn check(text: &str, signature: &str, signers: &Path) -> Outcome<String> {
    let refuse = |output: &Output| said(format!("nobody in {} signed it", signers.display()), output);
    let file = in_memory(signature.as_bytes())?;
    // ssh-keygen needs a path; the descriptor is inherited.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let mut find = Command::new(PROGRAM);
    find.args(["-Y", "find-principals", "-s", &path, "-f"]).arg(signers);
    let found = run(find, "")?;
    let names = String::from_utf8_lossy(&found.stdout).into_owned();
    let Some(name) = names.lines().next().filter(|_| found.status.success()) else {
        return Err(refuse(&found));
    };
    let mut verify = Command::new(PROGRAM);
    verify.args(["-Y", "verify", "-n", NAMESPACE, "-s", &path, "-I", name, "-f"]).arg(signers);
    let verified = run(verify, text)?;
    if verified.status.success() { Ok(name.to_owned()) } else { Err(refuse(&verified)) }
}

fn run(mut command: Command, input: &str) -> Outcome<Output> {
    let failed = |e: io::Error| {
        let failure = Failure::new(Status::Failed, format!("cannot run {PROGRAM}: {e}"));
        failure.hint("it is in Debian's package openssh-client")
    };
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).env("LC_ALL", "C");
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // If it ends early, its status says why.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output().map_err(failed)
}

fn said(what: String, output: &Output) -> Failure {
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().next().unwrap_or("it said nothing");
    Failure::new(Status::Failed, format!("{what}; ssh-keygen: {line}"))
}

fn in_memory(bytes: &[u8]) -> Outcome<OwnedFd> {
    let failed =
        |e: io::Error| Failure::new(Status::Failed, format!("cannot keep the signature in memory: {e}"));
    // Without CLOEXEC: ssh-keygen inherits it.
    let fd = memfd_create(c"signature", MemfdFlags::empty()).map_err(|e| failed(e.into()))?;
    write_all(&fd, bytes).map_err(failed)?;
    Ok(fd)
}

fn write_all(fd: impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = rustix::io::write(&fd, bytes)?;
        bytes = &bytes[written..];
    }
    Ok(())
}

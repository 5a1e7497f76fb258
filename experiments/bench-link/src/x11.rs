//! An X session over the link: a moving picture through `ssh -Y`, for each cipher, and directly without encryption.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use eke_bench_core::Environment;
use eke_bench_core::fault::on;
use eke_bench_desktop::desktop::bare::{Screen, die_with_parent};
use eke_bench_desktop::desktop::find;
use eke_link::Suite;
use eke_link::measure::Ssh;
use rustix::process::Signal;

use super::Options;
use super::error::{Error, Result};
use super::net::{CLIENT_ADDRESS, Net};
use super::picture::Frames;
use super::server::HOST;

/// The time to connect and start on a slow CPU, beside the time of the picture.
const STARTS_WITHIN: Duration = Duration::from_secs(40);

/// The client's screen.
pub struct Session {
    screen: Screen,
    in_server: Vec<String>,
    program: PathBuf,
    time: Duration,
}

impl Session {
    /// Starts the screen.
    ///
    /// # Errors
    /// A sentence: Xvfb or xauth is not installed, or the screen does not start.
    pub fn start(environment: &Environment<'_>, options: &Options, net: &Net) -> Result<Self, String> {
        // Both ends of ssh read the key with xauth.
        if find(&["xauth"]).is_none() {
            return Err("xauth is not installed (Debian: apt install xauth)".to_owned());
        }
        let screen = Screen::start_in_namespace(&net.in_client())?;
        let time = Duration::from_millis(if options.quick { 1500 } else { 4000 });
        let in_server = net.in_server().map(str::to_owned).to_vec();
        Ok(Self { screen, in_server, program: environment.program.clone(), time })
    }

    /// Measures frames through ssh with this cipher and these additional options.
    ///
    /// # Errors
    /// ssh or the picture fails, or a signal came.
    pub fn through(
        &self,
        environment: &Environment<'_>,
        ssh: &Ssh,
        suite: &Suite,
        options: &[&str],
    ) -> Result<Frames> {
        let line = format!("exec '{}' lab picture {}", self.program.display(), self.time.as_millis());
        let mut command = ssh.connection(HOST, Some(suite), &[&["-T", "-Y"], options].concat(), &line);
        command.env("DISPLAY", self.screen.display()).env("XAUTHORITY", self.screen.key());
        self.frames(environment, command, &suite.to_string())
    }

    /// Measures frames over the bare link.
    ///
    /// # Errors
    /// The picture fails, or a signal came.
    pub fn direct(&self, environment: &Environment<'_>) -> Result<Frames> {
        let mut command = Command::new("ip");
        command.args(&self.in_server[1..]).arg(&self.program).args(["lab", "picture"]);
        command.arg(self.time.as_millis().to_string());
        command.env("DISPLAY", format!("{CLIENT_ADDRESS}:{}", self.screen.number()));
        command.env("XAUTHORITY", self.screen.key());
        self.frames(environment, command, "direct")
    }

    fn frames(&self, environment: &Environment<'_>, mut command: Command, what: &str) -> Result<Frames> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        die_with_parent(&mut command, Signal::KILL);
        let mut child = command.spawn().map_err(on("start", Path::new("ssh")))?;
        let until = Instant::now() + STARTS_WITHIN + self.time;
        // The picture prints one line at its end; it fits into any pipe.
        while matches!(child.try_wait(), Ok(None)) {
            if environment.is_interrupted() || Instant::now() >= until {
                let _ = child.kill();
                let _ = child.wait();
                let late = Error::Environment(format!("X, {what}: the picture did not end in time"));
                return Err(if environment.is_interrupted() { Error::Interrupted } else { late });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let read = |pipe: Option<&mut dyn Read>| {
            let mut text = String::new();
            let _ = pipe.map(|p| p.read_to_string(&mut text));
            text
        };
        let output = read(child.stdout.as_mut().map(|p| p as &mut dyn Read));
        let error = read(child.stderr.as_mut().map(|p| p as &mut dyn Read));
        serde_json::from_str(output.trim())
            .map_err(|_| Error::Environment(format!("X, {what}: no picture: {}", error.trim())))
    }
}

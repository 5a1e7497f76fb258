//! Asks systemd. As a service the agent has a control group of its own: it stays when the session of `eke up` ends (`KillUserProcesses=`), and systemd-oomd
//! does not take it with another program of that session.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use eke_apply::boot::enable;
use eke_linux::{Root, inherited};

use super::within;

/// The unit of a package, or of `eke enable`.
const UNIT: &str = "eke.service";
/// The transient unit where there is none.
const TRANSIENT: &str = "eke-agent.service";
/// What the agent needs to act when memory ends, as properties that systemd knows since version 240. The transient unit has none of the sandbox of
/// [`UNIT`].
const PROPERTIES: [&str; 5] =
    ["Type=exec", "OOMScoreAdjust=-1000", "Nice=-10", "LimitMEMLOCK=infinity", "StandardOutput=null"];
/// Those of 243 and 248. An older systemd refuses a transient unit that has them.
const NEWER: [&str; 2] = ["OOMPolicy=continue", "ManagedOOMPreference=omit"];
/// systemd sends SIGKILL after its own time and waits once more.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);

/// Whether systemd is process 1 (sd_booted(3)).
fn is_there(root: &Root) -> bool {
    root.is_host() && root.exists("run/systemd/system")
}

/// Has systemd do that with the service. True if it did.
pub(super) fn of_service(root: &Root, verb: &str) -> bool {
    // After `eke disable` the service may run on without its file.
    let is_known = || enable::has_unit(root) || systemctl(&["is-active", "--quiet", UNIT]);
    is_there(root) && is_known() && systemctl(&[verb, UNIT])
}

/// Starts `program` as a service, with this file as its configuration and `log` for the errors of a transient one. Where it logs; `None` if none was started.
pub(super) fn start(root: &Root, program: &Path, config: Option<&str>, log: &Path) -> Option<String> {
    if !is_there(root) {
        return None;
    }
    if config.is_none() && has_unit_of(root, program) {
        // systemd counts starts, and refuses the fourth in five minutes.
        let _ = systemctl(&["reset-failed", UNIT]);
        // systemctl answers 0, too, where a condition of the unit fails, and in a chroot.
        if systemctl(&["start", UNIT]) && systemctl(&["is-active", "--quiet", UNIT]) {
            return Some(format!("`journalctl -u {UNIT}`"));
        }
    }
    is_transient_started(program, config, log).then(|| log.display().to_string())
}

/// Whether the unit that systemd knows starts this program without other options, as that of another installation does not.
fn has_unit_of(root: &Root, program: &Path) -> bool {
    if !enable::has_unit(root) {
        return false;
    }
    let shown = printed(&["show", "--property=LoadState,ExecStart", UNIT]);
    let resolved = |path: &Path| path.canonicalize().ok();
    shown
        .as_deref()
        .and_then(started_by)
        .is_some_and(|agent| resolved(Path::new(agent)).is_some_and(|path| Some(path) == resolved(program)))
}

/// The agent's program in what `systemctl show` prints of a unit, if the unit is loaded and starts nothing but `PROGRAM --up`.
fn started_by(shown: &str) -> Option<&str> {
    let mut commands = shown.lines().filter_map(|line| line.strip_prefix("ExecStart="));
    let (command, None) = (commands.next()?, commands.next()) else { return None };
    let is_loaded = shown.lines().any(|line| line == "LoadState=loaded");
    let words = command.split_once("argv[]=")?.1.split_once(" ;")?.0;
    words.strip_suffix(" --up").filter(|program| is_loaded && !program.contains(' '))
}

fn is_transient_started(program: &Path, config: Option<&str>, log: &Path) -> bool {
    for newer in (0..=NEWER.len()).rev() {
        let Some(arguments) = arguments(program, config, log, &NEWER[..newer]) else { return false };
        match ask("systemd-run", &arguments.iter().map(String::as_str).collect::<Vec<_>>()) {
            Answer::Done => return true,
            Answer::Refused => {}
            Answer::None => return false,
        }
    }
    false
}

/// The arguments of systemd-run. `None` for a path that systemd would change (`$`).
fn arguments(program: &Path, config: Option<&str>, log: &Path, newer: &[&str]) -> Option<Vec<String>> {
    // The working directory is another there.
    let config = config.map(std::path::absolute).transpose().ok()?;
    let config = config.as_deref().map(Path::to_str);
    let (program, log) = (program.to_str()?, log.to_str()?);
    let unit = format!("--unit={TRANSIENT}");
    let mut all = ["--quiet", "--collect", "--no-ask-password", &unit].map(str::to_owned).to_vec();
    all.extend(PROPERTIES.iter().chain(newer).map(|property| format!("--property={property}")));
    all.push(format!("--property=StandardError=append:{log}"));
    // As in the unit. systemd takes quotes and backslashes apart.
    let eke = Path::new(program).with_file_name("eke");
    let eke = eke.to_str().filter(|path| !path.contains(['"', '\\', '%']));
    all.extend(eke.map(|eke| format!("--property=ExecStopPost=-\"{eke}\" lab let-go")));
    all.extend(["--".to_owned(), program.to_owned()]);
    if let Some(config) = config {
        all.extend(["--config".to_owned(), config?.to_owned()]);
    }
    all.iter().all(|word| !word.contains('$')).then_some(all)
}

/// What a program of systemd's answered.
enum Answer {
    Done,
    Refused,
    /// It is missing, or does not answer in time.
    None,
}

/// True if systemctl did it.
fn systemctl(arguments: &[&str]) -> bool {
    matches!(ask("systemctl", arguments), Answer::Done)
}

fn ask(program: &str, arguments: &[&str]) -> Answer {
    match end_of(program, arguments, Stdio::null()) {
        Some((_, status)) if status.success() => Answer::Done,
        Some(_) => Answer::Refused,
        None => Answer::None,
    }
}

/// What systemctl prints, which is short: a pipe holds it.
fn printed(arguments: &[&str]) -> Option<String> {
    let (child, status) = end_of("systemctl", arguments, Stdio::piped())?;
    let mut text = String::new();
    child.stdout?.read_to_string(&mut text).ok()?;
    status.success().then_some(text)
}

/// `None` if it does not start, or not end in time.
fn end_of(program: &str, arguments: &[&str], output: Stdio) -> Option<(Child, ExitStatus)> {
    inherited::keep_from_children();
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(output).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    if !within(ANSWERS_WITHIN, || !matches!(child.try_wait(), Ok(None))) {
        // systemd continues without it.
        let _ = child.kill();
        let _ = child.wait();
        return None;
    }
    let status = child.wait().ok()?;
    Some((child, status))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(state: &str, argv: &str) -> String {
        format!(
            "LoadState={state}\nExecStart={{ path=/usr/bin/eke-agent ; argv[]={argv} ; ignore_errors=no ; start_time=[n/a] ; pid=0 }}\n"
        )
    }

    #[test]
    fn a_unit_with_other_options_or_commands_is_not_started() {
        let unit = shown("loaded", "/usr/bin/eke-agent --up");
        assert_eq!(started_by(&unit), Some("/usr/bin/eke-agent"));
        for other in [
            shown("masked", "/usr/bin/eke-agent --up"),
            shown("loaded", "/usr/bin/eke-agent --up --config /root/eke.toml"),
            shown("loaded", "/usr/bin/nice /usr/bin/eke-agent --up"),
            unit.clone() + &unit,
            "LoadState=not-found\n".to_owned(),
        ] {
            assert_eq!(started_by(&other), None, "{other}");
        }
    }

    #[test]
    fn a_transient_unit_gets_whole_paths_only() {
        let of = |config| arguments(Path::new("/opt/a b/eke-agent"), config, Path::new("/run/log"), &[]);
        let all = of(Some("/root/my eke.toml")).unwrap();
        assert_eq!(all[all.len() - 4..], ["--", "/opt/a b/eke-agent", "--config", "/root/my eke.toml"]);
        assert!(all.contains(&"--property=ExecStopPost=-\"/opt/a b/eke\" lab let-go".to_owned()), "{all:?}");
        let relative = of(Some("eke.toml")).unwrap();
        assert!(relative.last().is_some_and(|file| file.starts_with('/') && file.ends_with("/eke.toml")));
        assert_eq!(of(Some("/root/$HOME.toml")), None);
        assert_eq!(of(None).unwrap().last().map(String::as_str), Some("/opt/a b/eke-agent"));
    }
}

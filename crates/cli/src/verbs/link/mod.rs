//! `eke link`: measures, decides, prints; writes the decision on request, and undoes it.
//!
//! - [`caller`]: the user who runs ssh, and whether ssh may ask for a password
//! - [`files`]: the configuration files, journalled as owner "link"

mod caller;
mod files;

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use eke_dash::server::token::Token;
use eke_link::measure::x11::X11Command;
use eke_link::measure::{self, MeasureOptions, Ssh};
use eke_link::{Error, advice, far};
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::stop;
use eke_present::{put, putln};

use super::Context;
use crate::args::link::Link;
use crate::documents::link::{self as documents, Host};
use crate::show;

pub use files::undo_all;

/// The verb.
pub fn run(context: &Context, options: &Link) -> Outcome {
    if options.undo {
        return files::undo(context);
    }
    if options.x11.is_some() && std::env::var_os("DISPLAY").is_none() {
        return Err(Failure::new(
            Status::Usage,
            "--x11 needs a display for the windows, and DISPLAY is not set",
        )
        .hint(
            "run it in a graphical session; under sudo: sudo --preserve-env=DISPLAY,XAUTHORITY eke link ...",
        ));
    }
    let output = files::Output::new(context, options)?;
    let stop = stop::on_signals()?;
    let ssh = caller::ssh(options, context.json);
    let mut document = documents::Link::default();
    let mut failures = Vec::new();
    for host in &options.hosts {
        match one(context, &ssh, options, host, &stop) {
            Ok(link) => {
                let advice = advice::advice(&link);
                let link = Some(Box::new(link));
                document.hosts.push(Host { host: host.clone(), link, advice, error: None });
            }
            Err(e) => {
                let error = Some(e.to_string());
                document.hosts.push(Host { host: host.clone(), link: None, advice: Vec::new(), error });
                failures.push(e);
            }
        }
        if stop.load(Ordering::Relaxed) {
            return Err(failure(Error::Interrupted));
        }
    }
    let failed = failures.len();
    if failed == options.hosts.len() && (failed == 1 || !context.json) {
        return Err(all_failed(&document, failures));
    }
    output.fill(&mut document)?;
    if !context.json {
        put!("{}", show::link::link(&document));
        print_errors(&document);
        show_diffs(&document.files);
    }
    output.write(context, &ssh, &mut document)?;
    if context.json {
        context.print_json(&document)?;
    }
    Ok(if failed == 0 { Status::Done } else { Status::InPart })
}

fn one(
    context: &Context,
    ssh: &Ssh,
    options: &Link,
    host: &str,
    stop: &AtomicBool,
) -> Result<measure::Link, Error> {
    let time = Duration::from_secs(options.x11_seconds);
    let asked = MeasureOptions {
        policy: options.policy,
        sessions: options.sessions.map(|n| n as usize),
        x11: options.x11.clone().map(|command| X11Command { command, time }),
        ..MeasureOptions::new(host)
    };
    let is_several = options.hosts.len() > 1;
    measure::run(ssh, &asked, stop, &|line| caller::progress(context.json, is_several.then_some(host), line))
}

/// `eke lab link-end`.
pub fn end() -> Outcome {
    let connection = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let own = far::own_address(&connection).ok_or_else(|| {
        Failure::new(Status::Usage, "`eke lab link-end` is started by `eke link`, through ssh")
    })?;
    let listener = TcpListener::bind((own, 0))?;
    let token = Token::random()?;
    putln!("{} {} {}", far::HELLO, listener.local_addr()?.port(), token.text());
    far::serve(&listener, token.text(), std::io::stdin())?;
    far::pass_line(std::io::stdin())?;
    Ok(Status::Done)
}

fn all_failed(document: &documents::Link, mut failures: Vec<Error>) -> Failure {
    if failures.len() == 1 {
        return failure(failures.remove(0));
    }
    print_errors(document);
    Failure::new(Status::Failed, "none of these hosts could be measured")
}

fn print_errors(document: &documents::Link) {
    for error in document.hosts.iter().filter_map(|h| h.error.as_ref()) {
        eke_present::warn!("eke: {error}");
    }
}

fn failure(error: Error) -> Failure {
    let status = match error {
        Error::Host(_) => Status::Usage,
        _ => Status::Failed,
    };
    Failure::new(status, error.to_string())
}

/// Prints the changes that are written.
fn show_diffs(files: &[documents::File]) {
    for file in files {
        if file.diff.is_empty() {
            putln!("\n{} has this setting already.", file.path);
        } else {
            put!("\n{}", file.diff);
        }
    }
}

//! `eke link`: measures, decides, prints; writes the decision on request, and undoes it.
//!
//! - [`caller`]: the user who runs ssh, and whether ssh may ask for a password
//! - [`hosts`]: which hosts, and all of them measured
//! - [`files`]: the configuration files, journalled as owner "link"

pub mod caller;
mod files;
mod hosts;

use std::net::TcpListener;

use eke_link::{Error, far};
use eke_linux::token::Token;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::stop;
use eke_present::{put, putln};

use super::Context;
use crate::args::link::Link;
use crate::documents::link as documents;
use crate::show;

pub use files::{beyond_policy, undo_all};
use hosts::Hosts;

/// The verb.
pub fn run(context: &Context, options: &Link) -> Outcome {
    if options.undo {
        return files::undo(context);
    }
    require_display(options)?;
    files::Output::new(context, options)?;
    let stop = stop::on_signals()?;
    let ssh = caller::ssh(options, context.json);
    let hosts = Hosts::chosen(context, options)?;
    let (mut document, failures) = hosts.measure(context, &ssh, options, &stop).map_err(failure)?;
    let failed = failures.len();
    if failed == hosts.names.len() && (failed == 1 || !context.json) {
        return Err(all_failed(&document, failures));
    }
    let output = files::Output::new(context, options)?;
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

/// Windows of another machine need a screen here.
fn require_display(options: &Link) -> Result<(), Failure> {
    if options.x11.is_none() || std::env::var_os("DISPLAY").is_some() {
        return Ok(());
    }
    Err(Failure::new(Status::Usage, "--x11 needs a display for the windows, and DISPLAY is not set").hint(
        "run it in a graphical session; under sudo: sudo --preserve-env=DISPLAY,XAUTHORITY eke link ...",
    ))
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

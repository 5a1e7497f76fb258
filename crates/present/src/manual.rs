//! Man pages, from the same definitions as the help.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use clap::Command;
use clap_mangen::Man;

use crate::exit::{Failure, Outcome, Status};
use crate::put;

/// The page of a program or of one of its verbs on standard output, or all pages as files in a directory.
///
/// # Errors
/// There is no such verb, or a file cannot be written.
pub fn run(command: Command, verb: &[String], directory: Option<&Path>) -> Outcome {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    match directory {
        Some(directory) => write_pages(&command, directory)?,
        None => put!("{}", String::from_utf8_lossy(&page(find(&command, verb)?)?)),
    }
    Ok(Status::Done)
}

fn find<'a>(command: &'a Command, verb: &[String]) -> Outcome<&'a Command> {
    verb.iter().try_fold(command, |command, name| {
        let unknown = || Failure::new(Status::Usage, format!("{} has no verb \"{name}\"", name_of(command)));
        command.find_subcommand(name).ok_or_else(unknown)
    })
}

fn name_of(command: &Command) -> String {
    command.get_bin_name().unwrap_or(command.get_name()).to_owned()
}

/// `eke.1`, `eke-cache.1`, `eke-cache-mount.1`, ...
fn write_pages(command: &Command, directory: &Path) -> Outcome<()> {
    let file = directory.join(format!("{}.1", name_of(command).replace(' ', "-")));
    let written = page(command).and_then(|page| write(&file, &page));
    written.map_err(|e| {
        Failure::new(Status::Failed, format!("the man page {} cannot be written: {e}", file.display()))
    })?;
    shown(command).try_for_each(|verb| write_pages(verb, directory))
}

/// A new file, or a new content of an existing one.
fn write(file: &Path, content: &[u8]) -> std::io::Result<()> {
    OpenOptions::new().write(true).create(true).truncate(true).open(file)?.write_all(content)
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|verb| !verb.is_hide_set())
}

fn page(command: &Command) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let man =
        Man::new(command.clone()).source(concat!("eke ", env!("CARGO_PKG_VERSION"))).manual("User Commands");
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    if shown(command).next().is_some() {
        man.render_subcommands_section(&mut out)?;
    }
    if let Some(text) = command.get_after_help() {
        out.extend(after_help(&text.to_string()).bytes());
    }
    Ok(out)
}

/// The text below the options: the lines of examples as they are, then paragraphs, a line each.
fn after_help(text: &str) -> String {
    let (examples, paragraphs) = match text.strip_prefix("Example:\n") {
        Some(rest) => rest.split_once("\n\n").unwrap_or((rest, "")),
        None => ("", text),
    };
    let mut out = String::new();
    if !examples.is_empty() {
        let lines: String = examples.lines().map(roff_line).collect();
        out += &format!(".SH EXAMPLES\n.nf\n{lines}.fi\n");
    }
    if !paragraphs.is_empty() {
        out += ".SH NOTES\n";
        for line in paragraphs.lines().filter(|line| !line.is_empty()) {
            out += ".PP\n";
            out += &roff_line(line);
        }
    }
    out
}

/// A line that troff prints as it is.
fn roff_line(line: &str) -> String {
    let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
    format!("{guard}{}\n", line.replace('\\', "\\e").replace('-', "\\-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_keep_their_lines_and_paragraphs_are_filled() {
        let text = "Example:\n  eke a     b\n  eke c\n\nOne.\n\nTwo.";
        let page = ".SH EXAMPLES\n.nf\n  eke a     b\n  eke c\n.fi\n.SH NOTES\n.PP\nOne.\n.PP\nTwo.\n";
        assert_eq!(after_help(text), page);
        assert_eq!(after_help("One."), ".SH NOTES\n.PP\nOne.\n");
    }
}

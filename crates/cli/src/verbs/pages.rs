//! `eke completions` and `eke man`: from the same definitions as the help.

use clap::CommandFactory;
use eke_present::exit::{Outcome, Status};
use eke_present::put;

use crate::args::Args;

/// Completions for `shell` on standard output.
pub fn completions(shell: clap_complete::Shell) -> Outcome {
    // Into memory first: it panics where a reader is gone.
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "eke", &mut out);
    put!("{}", String::from_utf8_lossy(&out));
    Ok(Status::Done)
}

/// One man page: eke, then every verb in a section of its own.
pub fn man() -> Outcome {
    let mut out = Vec::new();
    let command = Args::command().disable_help_subcommand(true);
    let page = clap_mangen::Man::new(command.clone());
    page.render_title(&mut out)?;
    page.render_name_section(&mut out)?;
    page.render_synopsis_section(&mut out)?;
    page.render_description_section(&mut out)?;
    page.render_options_section(&mut out)?;
    for verb in command.get_subcommands().filter(|v| !v.is_hide_set()) {
        section(verb, &mut out)?;
    }
    page.render_extra_section(&mut out)?;
    put!("{}", String::from_utf8_lossy(&out));
    Ok(Status::Done)
}

fn section(verb: &clap::Command, out: &mut Vec<u8>) -> std::io::Result<()> {
    let page = clap_mangen::Man::new(verb.clone());
    out.extend(format!(".SH \"EKE {}\"\n", verb.get_name().to_uppercase()).bytes());
    let mut about = Vec::new();
    page.render_description_section(&mut about)?;
    page.render_options_section(&mut about)?;
    out.extend(
        String::from_utf8_lossy(&about)
            .replace(".SH DESCRIPTION\n", "")
            .replace(".SH OPTIONS", ".SS Options")
            .bytes(),
    );
    if let Some(example) = verb.get_after_help() {
        out.extend(
            format!(".SS Example\n.nf\n{}\n.fi\n", example.to_string().trim_start_matches("Example:\n"))
                .bytes(),
        );
    }
    Ok(())
}

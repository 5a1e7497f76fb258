//! `eke advise`: what holds this machine's memory, by program, and what closing it returns.

use eke_core::units::Bytes;
use eke_kernel::programs::{self, Program};
use serde::Serialize;

use super::Context;
use crate::exit::{Outcome, Status};
use crate::show::table::Table;

/// What `--json` prints.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Document {
    /// The largest first.
    pub programs: Vec<Row>,
    /// Processes of others that could not be read.
    pub unreadable_processes: usize,
}

/// One program.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// How many processes.
    pub processes: usize,
    /// Proportional share of RAM.
    pub pss: Bytes,
    /// Proportional share of swap, uncompressed.
    pub swap_pss: Bytes,
    /// What closing it returns: its private pages in RAM, and in swap.
    pub returns: Bytes,
}

impl From<Program> for Row {
    fn from(p: Program) -> Self {
        Self {
            returns: p.private + p.swap_pss,
            name: p.name,
            processes: p.processes,
            pss: p.pss,
            swap_pss: p.swap_pss,
        }
    }
}

/// The verb.
pub fn run(context: &Context, most: usize) -> Outcome {
    let (programs, unreadable_processes) = programs::programs(&context.root);
    let programs = programs.into_iter().take(most).map(Row::from).collect();
    let document = Document { programs, unreadable_processes };
    if context.json {
        context.print_json(&document)?;
    } else {
        show(&document);
    }
    Ok(Status::Done)
}

fn show(document: &Document) {
    let mut table = Table::new(&["program", "processes", "in RAM", "in swap", "closing it returns"]);
    for row in &document.programs {
        table.row([
            row.name.clone(),
            row.processes.to_string(),
            row.pss.to_string(),
            row.swap_pss.to_string(),
            row.returns.to_string(),
        ]);
    }
    print!("{table}");
    println!(
        "\nIn RAM and in swap are proportional shares (Pss): shared pages are divided among those that share them."
    );
    if document.unreadable_processes > 0 {
        println!(
            "{} processes of other users could not be read (root sees all).",
            document.unreadable_processes
        );
    }
}

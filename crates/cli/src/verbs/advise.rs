//! `eke advise`: what holds this machine's memory, by program, and what closing it returns.

use eke_linux::programs::{self, Program};
use eke_present::exit::{Outcome, Status};
use eke_present::table::Table;
use eke_present::task::{Task, unknown};
use eke_present::{put, say};

use super::Context;
use crate::documents::{self, AdviseRow as Row};

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
    let task = Task::begin(context.json, "reading every process's memory", unknown());
    let (programs, unreadable_processes) = programs::programs(&context.root);
    drop(task);
    let programs = programs.into_iter().take(most).map(Row::from).collect();
    let document = documents::Advise { programs, unreadable_processes };
    context.print(&document, show)?;
    Ok(Status::Done)
}

fn show(document: &documents::Advise) {
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
    put!("{table}");
    say!(
        "\nIn RAM and in swap are proportional shares (Pss): shared pages are divided among those that share them."
    );
    if document.unreadable_processes > 0 {
        say!("{} processes of other users could not be read (root sees all).", document.unreadable_processes);
    }
}

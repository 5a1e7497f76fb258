//! `eke advise`: memory by program, and how much closing each program returns.

use eke_linux::programs::{self, Program};
use eke_present::exit::{Outcome, Status};
use eke_present::table::Table;
use eke_present::task::{Task, unknown};
use eke_present::{put, putln};

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
    let others_hidden = programs::are_others_hidden(&context.root);
    let document = documents::Advise { programs, unreadable_processes, others_hidden };
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
    putln!(
        "\n\"in RAM\" and \"in swap\" are proportional shares (PSS): the processes that share a page divide its size."
    );
    if document.others_hidden {
        putln!(
            "/proc hides the processes of other users (hidepid), so they are missing here (root can read all)."
        );
    }
    if document.unreadable_processes > 0 {
        let what = if document.unreadable_processes == 1 { "process" } else { "processes" };
        putln!(
            "{} {what} of other users could not be read (root can read all).",
            document.unreadable_processes
        );
    }
}

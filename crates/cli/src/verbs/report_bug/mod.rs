//! `eke report-bug`: one file about this machine for the developers, with nothing private in it.

mod collect;
mod private;
mod scrub;

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use eke_model::date::date;
use eke_model::text::one_line;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::putln;
use eke_present::task::{Task, unknown};
use eke_swap::Swap;
use serde_json::Value;

use super::{Context, link};
use crate::documents;
use scrub::Scrubber;

/// The project has no public address yet.
const SEND_TO: &str = "whoever gave you this package of eke";
const CONTAINS: [&str; 8] = [
    "versions of eke, kernel and distribution, architecture, page size, init system",
    "memory sizes, types of mounts, kernel features and settings of memory",
    "what `eke doctor` prints",
    "the plan with its measurements",
    "what `eke status` prints",
    "changed settings in the journal, with old and new values",
    "configuration keys that differ from the defaults",
    "the agent's last log lines",
];
const LEFT_OUT: [&str; 5] = [
    "names of the machine, of users, groups and files",
    "network addresses, UUIDs, labels and serial numbers",
    "processes, their command lines, and learned programs",
    "mount points and cached directories",
    "contents of memory and of files",
];

/// The verb.
pub fn run(context: &Context, output: Option<&Path>) -> Outcome {
    let date = date(eke_client::unix_s());
    let task = Task::begin(context.json, "collecting", unknown());
    let (document, replaced) = collected(context);
    drop(task);
    let text = text(&date, &document, &replaced)?;
    let file = write(output, &date, &text)?;
    let own = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
    let summary = documents::ReportBug {
        file: file.clone(),
        bytes: text.len() as u64,
        contains: own(&CONTAINS),
        left_out: own(&LEFT_OUT),
        replaced,
        send_to: SEND_TO.to_owned(),
    };
    context.print(&summary, show)?;
    Ok(Status::Done)
}

/// The report without private text, and how often each kind was replaced.
fn collected(context: &Context) -> (Value, Vec<documents::Replaced>) {
    let facts = Swap.probe(&context.root).ok();
    let mut scrubber = Scrubber::new(private::find(&context.root, facts.as_ref(), &context.settings.swap));
    let document = scrubber.document(Value::Object(collect::sections(context, facts.as_ref())));
    let replaced = scrubber.replaced.iter();
    let replaced =
        replaced.map(|(what, times)| documents::Replaced { what: (*what).to_owned(), times: *times });
    (document, replaced.collect())
}

fn text(date: &str, document: &Value, replaced: &[documents::Replaced]) -> Outcome<String> {
    let replaced: Vec<String> = replaced.iter().map(|r| format!("{} ({})", r.what, r.times)).collect();
    let replaced = if replaced.is_empty() { "nothing".to_owned() } else { replaced.join(", ") };
    Ok(format!(
        "A report for the developers of eke, {date}. Read it before you send it to {SEND_TO}\n\n\
         It contains:\n{}\nIt does not contain:\n{}\nReplaced by words in <>: {replaced}\n\n{}\n",
        list(&CONTAINS),
        list(&LEFT_OUT),
        serde_json::to_string_pretty(document)?
    ))
}

fn shown(path: &Path) -> String {
    one_line(&path.display().to_string()).into_owned()
}

fn list(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("- {line}\n")).collect()
}

fn show(summary: &documents::ReportBug) {
    let kib = summary.bytes.div_ceil(1024);
    putln!("Wrote {} ({kib} KiB), readable only by you.\n", shown(&summary.file));
    putln!("It contains:\n{}", list(&CONTAINS));
    putln!("It does not contain:\n{}", list(&LEFT_OUT));
    for replaced in &summary.replaced {
        putln!("Replaced: {} ({}).", replaced.what, replaced.times);
    }
    putln!("\nRead it, then send it to {}.", summary.send_to);
}

/// Writes a new file, mode 0600, that belongs to the user who called sudo.
fn write(output: Option<&Path>, date: &str, text: &str) -> Outcome<PathBuf> {
    let named = |n: u32| match n {
        1 => PathBuf::from(format!("eke-report-{date}.txt")),
        n => PathBuf::from(format!("eke-report-{date}-{n}.txt")),
    };
    let mut n = 1;
    loop {
        let path = output.map_or_else(|| named(n), Path::to_owned);
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(mut file) => {
                if let Some((uid, gid)) = link::caller::sudo_user() {
                    fchown(&file, Some(uid), Some(gid))?;
                }
                file.write_all(text.as_bytes())?;
                return Ok(path);
            }
            Err(e) if e.kind() == ErrorKind::AlreadyExists && output.is_none() && n < 1000 => n += 1,
            Err(e) => {
                let failure = Failure::new(Status::Failed, format!("cannot create {}: {e}", shown(&path)));
                return Err(failure.hint("`--output FILE` names another file, which must not exist"));
            }
        }
    }
}

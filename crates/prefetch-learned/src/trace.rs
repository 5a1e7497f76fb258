//! `eke prefetch trace`.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use eke_model::text::one_line;
use eke_prefetch_model::trace_text::{Names, event_row, header, map_row};
use eke_prefetch_model::{Event, Program, ProgramId};
use eke_prefetch_store::{Access, ProgramStore, Record};
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::task::{Task, unknown};
use eke_present::{document, putln};

use crate::documents::Trace;
use crate::{Store, failure};

/// The verb.
pub fn run(json: bool, store: &Store, hash: bool, output: Option<&Path>) -> Outcome {
    if json && output.is_none() {
        let both = "--json needs --output: standard output would hold both the trace and the summary";
        return Err(Failure::new(Status::Usage, both)
            .hint("--output FILE writes the trace to a file; --json then prints a summary"));
    }
    let keep = store.open(Access::Read)?;
    let names = if hash { Names::Hashed(key()?) } else { Names::Plain };
    let Some(path) = output else {
        write(&mut BufWriter::new(io::stdout().lock()), &keep, store, names)?;
        return Ok(Status::Done);
    };
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let file = opened.map_err(|e| {
        Failure::new(Status::Failed, format!("cannot make {}: {e}; no file is replaced", path.display()))
    })?;
    let task = Task::begin(json, "writing the trace", unknown());
    let written = write(&mut BufWriter::new(file), &keep, store, names).inspect_err(|_| {
        // half a trace would pass for a whole one
        let _ = std::fs::remove_file(path);
    });
    drop(task);
    let (events, programs, maps) = written?;
    let document = Trace { output: path.to_owned(), hashed: hash, events, programs, maps };
    document::print(json, &document, |d| {
        putln!(
            "{}: {} events, {} pieces of files of {} programs",
            one_line(&d.output.to_string_lossy()),
            d.events,
            d.maps,
            d.programs
        );
    })?;
    Ok(Status::Done)
}

fn key() -> Outcome<[u8; 16]> {
    let mut key = [0; 16];
    let got = rustix::rand::getrandom(&mut key, rustix::rand::GetRandomFlags::empty());
    got.map_err(|e| Failure::new(Status::Failed, format!("cannot get a random key: {e}")))?;
    Ok(key)
}

/// Returns the numbers of events, programs and pieces of files written. It leaves out directories, which have no pages.
fn write(
    to: &mut impl Write,
    keep: &ProgramStore,
    store: &Store,
    names: Names,
) -> Outcome<(usize, usize, usize)> {
    let records = keep.records(store.now_s).map_err(failure)?;
    let known: BTreeMap<ProgramId, Vec<u8>> =
        records.iter().map(|record| (record.id(), name(&record.program))).collect();
    let events = keep.events().map_err(failure)?;
    to.write_all(header().as_bytes())?;
    for happened in &events {
        let program = match happened.event {
            Event::Session => Vec::new(),
            Event::Start(id) | Event::Stop(id) => {
                known.get(&id).cloned().unwrap_or_else(|| format!("{:016x}", id.0).into_bytes())
            }
        };
        to.write_all(event_row(happened, &program, names).as_bytes())?;
    }
    let mut maps = 0;
    for record in &records {
        maps += write_maps(to, keep, store, record, names)?;
    }
    to.flush()?;
    Ok((events.len(), records.len(), maps))
}

fn write_maps(
    to: &mut impl Write,
    keep: &ProgramStore,
    store: &Store,
    record: &Record,
    names: Names,
) -> Outcome<usize> {
    let Some(known) = keep.program(record.id(), store.now_s).map_err(failure)? else { return Ok(0) };
    let program = name(&record.program);
    let mut maps = 0;
    for file in &known.set.files {
        for span in file.pages.spans() {
            to.write_all(map_row(&program, file.path.as_os_str().as_bytes(), *span, names).as_bytes())?;
            maps += 1;
        }
    }
    Ok(maps)
}

/// The program's path, and the script's path after a space.
fn name(program: &Program) -> Vec<u8> {
    let mut name = program.exe.as_os_str().as_bytes().to_vec();
    if let Some(script) = &program.script {
        name.push(b' ');
        name.extend_from_slice(script.as_os_str().as_bytes());
    }
    name
}

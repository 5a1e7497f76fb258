//! `eke prefetch import`: launches that another machine learned. Only files of the same version count, and a program that this machine knows stays as
//! it is.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use eke_linux::Root;
use eke_model::text::one_line;
use eke_model::units::Bytes;
use eke_prefetch_model::{FileSet, Kind, Launch, LaunchEnd, Touched};
use eke_prefetch_store::ProgramStore;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::{document, putln};
use rustix::fs::{Mode, OFlags};

use super::form::{ExportedProgram, MOST_BYTES, decode, is_cut, is_signature_cut, split};
use super::{of_system, signature};
use crate::documents::Import;
use crate::{Store, failure};

/// The signers that are trusted unless others are named (ssh-keygen(1), ALLOWED SIGNERS).
pub const SIGNERS: &str = "/etc/eke/launch_signers";

/// What to import.
#[derive(Debug)]
pub struct Options {
    /// The file.
    pub file: PathBuf,
    /// Who may have signed it.
    pub signers: PathBuf,
    /// Without a signature, too.
    pub unsigned: bool,
}

/// The verb.
pub(crate) fn run(json: bool, root: &Root, store: &Store, options: &Options) -> Outcome {
    let text = read(&options.file)?;
    let (signed, by) = trusted(&text, options)?;
    let wrong = |e| Failure::new(Status::Failed, format!("{}: {e}", options.file.display()));
    let programs = decode(signed).map_err(wrong)?;
    let boot = root.read("proc/sys/kernel/random/boot_id").unwrap_or_default();
    let mut keep = ProgramStore::open(&store.dir, boot.trim(), store.now_s).map_err(failure)?.store;
    let mut document = Import { signed_by: by, ..Import::default() };
    for program in &programs {
        import(root, &mut keep, store, program, &mut document)?;
    }
    let has_signature = split(&text).1.is_some();
    document::print(json, &document, |d| putln!("{}", one_line(&sentence(d, has_signature))))?;
    Ok(Status::Done)
}

fn sentence(d: &Import, has_signature: bool) -> String {
    let by = match &d.signed_by {
        Some(name) => format!("signed by {name}"),
        None if has_signature => "its signature was not checked".to_owned(),
        None => "not signed".to_owned(),
    };
    format!(
        "{} programs are known now ({by}); {} were known already, {} are missing here or of another version",
        d.imported.len(),
        d.known,
        d.other_version
    )
}

/// The signed part, and who signed it.
fn trusted<'a>(text: &'a str, options: &Options) -> Outcome<(&'a str, Option<String>)> {
    let file = options.file.display();
    if is_cut(text) || (!options.unsigned && is_signature_cut(text)) {
        let cut = Failure::new(Status::Failed, format!("{file} is cut short: a part of it is missing"));
        return Err(cut.hint("copy it again, or export it again"));
    }
    match split(text) {
        (signed, _) if options.unsigned => Ok((signed, None)),
        (_, None) => Err(Failure::new(Status::Failed, format!("{file} is not signed"))
            .hint("`eke prefetch export --sign KEY` signs it; --unsigned imports a file that you trust")),
        (signed, Some(signature)) => {
            Ok((signed, Some(signature::check(signed, signature, &options.signers)?)))
        }
    }
}

fn read(path: &Path) -> Outcome<String> {
    let failed = |why: String| Failure::new(Status::Failed, format!("cannot read {}: {why}", path.display()));
    let file = open(path).map_err(|e| failed(e.to_string()))?;
    let mut text = String::new();
    let got = file.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(|e| failed(e.to_string()))?;
    if got as u64 > MOST_BYTES {
        return Err(failed(format!("it is larger than {}", Bytes(MOST_BYTES))));
    }
    Ok(text)
}

/// A regular file or standard input: a FIFO may have no writer, and a device no end.
fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    if path == Path::new("/dev/stdin") {
        return Ok(Box::new(io::stdin()));
    }
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file (/dev/stdin is standard input)"));
    }
    Ok(Box::new(file))
}

fn import(
    root: &Root,
    keep: &mut ProgramStore,
    store: &Store,
    shared: &ExportedProgram,
    document: &mut Import,
) -> Outcome<()> {
    let program = shared.program();
    if keep.program(program.id(), store.now_s).map_err(failure)?.is_some() {
        document.known += 1;
        return Ok(());
    }
    let Some(set) = here(root, shared) else {
        document.other_version += 1;
        return Ok(());
    };
    let launch = Launch {
        program: program.clone(),
        uid: 0,
        began_ns: store.now_s.saturating_mul(1_000_000_000),
        took: shared.took(),
        ended: LaunchEnd::Quiet,
        cold_bytes: set.bytes(),
        set: set.clone(),
    };
    keep.add_launch(&launch, &set, store.now_s).map_err(failure)?;
    document.imported.push(program.to_string());
    Ok(())
}

/// The files that are here in the same version, with this machine's stamps. `None` if the executable or the script is not, or less than half of the
/// bytes are: that is another version of the program.
fn here(root: &Root, shared: &ExportedProgram) -> Option<FileSet> {
    let whole = shared.set();
    let set = FileSet { files: whole.files.iter().filter_map(|file| same(root, file)).collect() };
    let program = shared.program();
    let has = |path: &Path| set.files.iter().any(|file| file.path == path && file.kind == Kind::File);
    let has_own = has(&program.exe) && program.script.as_deref().is_none_or(has);
    (has_own && set.bytes().saturating_mul(2) >= whole.bytes()).then_some(set)
}

fn same(root: &Root, file: &Touched) -> Option<Touched> {
    let (kind, stamp) = of_system(root, &file.path)?;
    let is_same = kind == file.kind
        && (kind == Kind::Directory
            || (stamp.size, stamp.mtime_ns) == (file.stamp.size, file.stamp.mtime_ns));
    is_same.then(|| Touched { stamp, ..file.clone() })
}

//! Decodes records to trace events: paths, programs, launches.

use std::path::PathBuf;
use std::time::Duration;

use eke_linux::device::Device;
use eke_linux::parse::file_system::is_on_disk;
use eke_model::units::PageSize;

use super::super::memory_files::MemoryFiles;
use super::super::mount_index::inside;
use super::super::mounts::Mounts;
use super::super::process;
use super::super::record::{self, Record};
use super::super::script_path;
use eke_prefetch_model::file_set::{Kind, Stamp};
use eke_prefetch_model::learn::{Exec, Inode, LaunchId, PageUse, TraceEvent, TracedFile, script};
use eke_prefetch_model::pages::MachineSpan;
use eke_prefetch_model::program::Program;

/// The context for decoding records.
#[derive(Debug)]
pub struct EventDecoder {
    /// What shows the memory of processes.
    pub files: MemoryFiles,
    /// This host's mounts.
    pub mounts: Mounts,
    page: PageSize,
}

const S_IFMT: u16 = 0o170_000;
const S_IFBLK: u16 = 0o060_000;
const S_IFDIR: u16 = 0o040_000;

impl EventDecoder {
    /// Reads the mounts.
    pub fn new(files: &MemoryFiles) -> Self {
        let root = files.root();
        Self { files: files.clone(), mounts: Mounts::read(root), page: root.page_size() }
    }

    /// Reads the mounts again if they changed.
    pub fn refresh(&mut self) {
        self.mounts.refresh();
    }

    /// Passes the events of a record to `each`.
    pub fn report(&mut self, record: Record<'_>, each: &mut dyn FnMut(TraceEvent)) {
        match record {
            Record::Exec(exec) => each(TraceEvent::Exec(self.exec(&exec))),
            Record::Exit { launch, pid, at_ns } => {
                each(TraceEvent::Exit { pid, at: Duration::from_nanos(at_ns), launch: some(launch) });
            }
            Record::Fork { launch, pid, parent } => {
                each(TraceEvent::Fork { pid, parent, launch: LaunchId(launch) });
            }
            Record::File(file) => {
                let (launch, inode) = (LaunchId(file.launch), inode(file.dev, file.ino, file.generation));
                each(TraceEvent::File { launch, pid: file.pid, inode, found: self.file(&file) });
            }
            Record::Pages(pages) => self.pages(&pages, each),
        }
    }

    fn exec(&self, exec: &record::Exec<'_>) -> Exec {
        Exec {
            pid: exec.pid,
            parent: exec.parent,
            uid: exec.uid,
            group: exec.group,
            session: Some(exec.session).filter(|session| *session != record::NO_SESSION),
            ino: self
                .mounts
                .kind(Device::of_kernel(exec.dev))
                .filter(|kind| is_on_disk(kind))
                .map(|_| exec.ino),
            at: Duration::from_nanos(exec.at_ns),
            launch: some(exec.launch),
            program: self.program(exec),
        }
    }

    /// The executed program. If BPF could not read the whole path, `/proc` gives it, unless the file is deleted.
    fn program(&self, exec: &record::Exec<'_>) -> Option<Program> {
        let device = Device::of_kernel(exec.dev);
        let exe: PathBuf = match exec.names {
            Some(names) => self.mounts.executable(device, &inside(names)),
            None => process::exe(self.files.root(), exec.pid),
        }?;
        if !script::is_interpreter(&exe) {
            return Some(Program::of_exe(exe));
        }
        let cwd = process::cwd(self.files.root(), exec.pid);
        let more = if exec.has_more_args { self.files.args(exec.pid) } else { Vec::new() };
        let (args, is_whole) =
            if more.is_empty() { (exec.args, !exec.has_more_args) } else { (&more[..], true) };
        let program = script::program(exe, &process::split_args(args, is_whole), cwd.as_deref());
        Some(script_path::on_host(self.files.root(), &self.mounts, exec.pid, program))
    }

    fn file(&mut self, file: &record::File<'_>) -> Option<TracedFile> {
        let device = Device::of_kernel(file.dev);
        if file.mode & S_IFMT == S_IFBLK {
            return self.mounts.device(device);
        }
        let names = file.names.filter(|_| file.nlink > 0)?;
        let dev = device.st_dev();
        if file.mode & S_IFMT == S_IFDIR {
            let stamp = Stamp { dev, ino: file.ino, ..Stamp::default() };
            return self.mounts.file(device, &inside(names), Kind::Directory, stamp, file.owner);
        }
        let stamp = Stamp { dev, ino: file.ino, size: file.size, mtime_ns: file.mtime_ns };
        self.mounts.file(device, &inside(names), Kind::File, stamp, file.owner)
    }

    fn pages(&self, pages: &record::Pages, each: &mut dyn FnMut(TraceEvent)) {
        let (launch, inode) = (LaunchId(pages.launch), inode(pages.dev, pages.ino, pages.generation));
        let how = match pages.how {
            0 => PageUse::Added,
            1 => PageUse::Fault,
            2 => PageUse::Mapped,
            _ => PageUse::Read,
        };
        for span in spans(pages.first, pages.mask) {
            each(TraceEvent::Pages { launch, pid: pages.pid, inode, span: span.in_4k(self.page), how });
        }
    }
}

fn some(launch: u32) -> Option<LaunchId> {
    (launch != 0).then_some(LaunchId(launch))
}

fn inode(dev: u32, ino: u64, generation: u32) -> Inode {
    Inode { dev: Device::of_kernel(dev).st_dev(), ino, generation }
}

/// The runs of set bits; bit 0 is the machine's page `first`.
fn spans(first: u64, mask: u64) -> Vec<MachineSpan> {
    let mut spans = Vec::new();
    let mut at = 0u32;
    while at < 64 && mask >> at != 0 {
        let from = at + (mask >> at).trailing_zeros();
        let end = from + (mask >> from).trailing_ones();
        spans.extend(MachineSpan::new(first.saturating_add(from.into()), first.saturating_add(end.into())));
        at = end;
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_runs_of_pages() {
        let plain = |mask| spans(64, mask).iter().map(|span| (span.first, span.end)).collect::<Vec<_>>();
        assert_eq!(plain(0), []);
        assert_eq!(plain(u64::MAX), [(64, 128)]);
        assert_eq!(plain(0b1011), [(64, 66), (67, 68)]);
        assert_eq!(plain(1 << 63 | 2), [(65, 66), (127, 128)]);
    }

    proptest::proptest! {
        #[test]
        fn runs_are_the_bits(mask in 0u64..) {
            let back = spans(0, mask).iter().flat_map(|span| span.first..span.end).fold(0u64, |bits, page| bits | 1 << page);
            proptest::prop_assert_eq!(back, mask);
        }
    }
}

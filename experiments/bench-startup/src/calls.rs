//! The time of a launch by kind of system call, from the output of `strace -f -T`. Pure.
//!
//! It is the thesis's second table. Times are wall-clock times, summed over threads, and include the cost of tracing.

/// Kinds of system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bytes of files.
    Read,
    /// Names in directories.
    Directory,
    /// Opening files and reading attributes.
    Open,
    /// Making maps. Page faults read them later.
    Map,
}

/// The calls to trace. Waits for other programs (poll, futex) are not the disk's time.
pub const TRACED: &str = "read,pread64,readv,preadv,getdents64,open,openat,openat2,stat,lstat,newfstatat,statx,access,faccessat,\
    faccessat2,readlink,readlinkat,execve,mmap,fstat";

/// Seconds by kind, and calls that took more than a millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Calls {
    /// In reads.
    pub read_s: f64,
    /// In reading directories.
    pub directory_s: f64,
    /// In opening files and reading attributes.
    pub open_s: f64,
    /// In mmap.
    pub map_s: f64,
    /// All calls.
    pub calls: u64,
    /// Calls longer than 1 ms, as the thesis counts them.
    pub slow: u64,
}

impl Calls {
    /// All kinds together.
    pub fn seconds(&self) -> f64 {
        self.read_s + self.directory_s + self.open_s + self.map_s
    }

    fn add(&mut self, kind: Kind, seconds: f64) {
        let total = match kind {
            Kind::Read => &mut self.read_s,
            Kind::Directory => &mut self.directory_s,
            Kind::Open => &mut self.open_s,
            Kind::Map => &mut self.map_s,
        };
        *total += seconds;
        self.calls += 1;
        self.slow += u64::from(seconds > 1e-3);
    }
}

/// Sums a trace whose lines begin with the process (`-f`) and end with `<seconds>` (`-T`). An interrupted call counts where it
/// resumes. Lines of the first process, the launcher, do not count. The paths of `-y` distinguish reads of files from those of sockets
/// and pipes: `read(3</usr/lib/x>, ...)`.
pub fn parse(text: &str) -> Calls {
    let mut calls = Calls::default();
    let mut launcher = None;
    for line in text.lines() {
        let Some((pid, rest)) = line.trim_start().split_once(char::is_whitespace) else { continue };
        if *launcher.get_or_insert(pid) == pid {
            continue;
        }
        if let Some((kind, seconds)) = call(rest.trim_start()) {
            calls.add(kind, seconds);
        }
    }
    calls
}

fn call(rest: &str) -> Option<(Kind, f64)> {
    let seconds: f64 = rest.rsplit_once('<')?.1.strip_suffix('>')?.parse().ok()?;
    let (name, of) = match rest.strip_prefix("<... ") {
        Some(resumed) => (resumed.split_once(' ')?.0, ""),
        None => rest.split_once('(')?,
    };
    let kind = kind(name)?;
    let waits = kind == Kind::Read && is_no_file(of);
    (!waits).then_some((kind, seconds))
}

/// `3<socket:[12]>`, `4<pipe:[7]>`, `5<anon_inode:[eventfd]>`.
fn is_no_file(of: &str) -> bool {
    let opened = of.split_once('<').map_or("", |(_, path)| path);
    ["socket:", "pipe:", "anon_inode:", "/dev/", "UNIX", "TCP", "NETLINK"]
        .iter()
        .any(|begin| opened.starts_with(begin))
}

fn kind(name: &str) -> Option<Kind> {
    Some(match name {
        "read" | "pread64" | "readv" | "preadv" => Kind::Read,
        "getdents64" => Kind::Directory,
        "mmap" => Kind::Map,
        name if TRACED.split(',').any(|traced| traced.trim() == name) => Kind::Open,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"100 execve("/usr/bin/a", ["a"], 0x7ff /* 9 vars */) = 0 <9.000000>
101 execve("/usr/bin/xterm", ["xterm"], 0x7ff /* 9 vars */) = 0 <0.020000>
101 openat(AT_FDCWD, "/etc/ld.so.cache", O_RDONLY|O_CLOEXEC) = 3</etc/ld.so.cache> <0.000500>
101 read(3</usr/lib/libx.so>, "\177ELF<0.5>"..., 832) = 832 <0.010000>
101 read(4<UNIX-STREAM:[5->6]>, "", 8) = 8 <3.000000>
101 getdents64(5</usr/share>, 0x55 /* 3 entries */, 32768) = 80 <0.002000>
102 read(6</usr/lib/liby.so>,  <unfinished ...>
101 futex(0x7f, FUTEX_WAIT, 1, NULL) = 0 <7.000000>
102 <... read resumed>"x"..., 4096) = 4096 <0.004000>
101 mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 3</usr/lib/libx.so>, 0) = 0x7f <0.000010>
101 +++ exited with 0 +++
"#;

    #[test]
    fn seconds_are_by_kind_without_waits_and_the_launcher() {
        let calls = parse(TEXT);
        assert!((calls.read_s - 0.014).abs() < 1e-9, "{calls:?}");
        assert!(
            (calls.directory_s - 0.002).abs() < 1e-9 && (calls.open_s - 0.0205).abs() < 1e-9,
            "{calls:?}"
        );
        assert_eq!((calls.calls, calls.slow), (6, 4));
        assert!((calls.seconds() - 0.03651).abs() < 1e-9);
        assert_eq!(parse("100 x\nnonsense\n101 read(3"), Calls::default());
    }
}

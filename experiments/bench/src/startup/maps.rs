//! Which files a process has mapped. Text in, figures out; pure.

use std::collections::BTreeSet;

/// A line of `/proc/PID/maps` that has a file behind it, as preload and its thesis count: path, offset, length.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Map {
    /// The file.
    pub path: String,
    /// Where in the file it begins, in bytes.
    pub offset: u64,
    /// Its length in memory, in bytes.
    pub length: u64,
}

/// The maps of one process (proc_pid_maps(5)); those without a file, of devices, and of deleted files are none.
pub fn parse(text: &str) -> impl Iterator<Item = Map> + '_ {
    text.lines().filter_map(line)
}

fn line(line: &str) -> Option<Map> {
    let mut fields = line.splitn(6, ' ').map(str::trim);
    let (begin, end) = fields.next()?.split_once('-')?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let (_permissions, offset, device) = (fields.next()?, hex(fields.next()?)?, fields.next()?);
    let (_inode, path) = (fields.next()?, fields.next()?);
    let is_file = path.starts_with('/')
        && device != "00:00"
        && !path.ends_with(" (deleted)")
        && !path.starts_with("/dev/");
    let length = hex(end)?.checked_sub(hex(begin)?)?;
    is_file.then(|| Map { path: path.to_owned(), offset, length })
}

/// How many, and their bytes; each once, whoever has it.
pub fn size(maps: &BTreeSet<Map>) -> (usize, u64) {
    (maps.len(), maps.iter().map(|m| m.length).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
7f0000000000-7f0000028000 r--p 00000000 07:00 1234                       /usr/lib/x86_64-linux-gnu/libc.so.6
7f0000028000-7f000002a000 r-xp 00028000 07:00 1234                       /usr/lib/x86_64-linux-gnu/libc.so.6
7f0000030000-7f0000040000 rw-p 00000000 00:00 0 
7f0000040000-7f0000041000 r--p 00000000 07:00 99                         /tmp/a b
7f0000041000-7f0000042000 r--p 00000000 07:00 98                         /tmp/gone (deleted)
7f0000042000-7f0000043000 rw-s 00000000 00:05 7                          /dev/shm/x
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
nonsense
";

    #[test]
    fn maps_have_files_behind_them_and_count_once() {
        let maps: BTreeSet<Map> = parse(TEXT).chain(parse(TEXT)).collect();
        assert_eq!(size(&maps), (3, 0x28000 + 0x2000 + 0x1000));
        assert!(maps.iter().any(|m| m.path == "/tmp/a b"));
    }
}

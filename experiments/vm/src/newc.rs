//! The newc cpio archive, which the kernel extracts as its first file system. Pure: returns bytes, reads nothing.

const MAGIC: &str = "070701";
const TRAILER: &str = "TRAILER!!!";

/// A newc archive under construction.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    inode: u32,
}

impl Archive {
    /// Adds one member. `name` has no leading slash; `mode` is the whole `st_mode` (type and permissions); `data` is a
    /// file's content or a link's target, at most 4 GiB.
    pub fn add(&mut self, name: &str, mode: u32, data: &[u8]) {
        self.inode += 1;
        self.member(self.inode, name, mode, data);
    }

    /// Ends the archive and returns its bytes.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.member(0, TRAILER, 0, &[]);
        self.bytes
    }

    fn member(&mut self, inode: u32, name: &str, mode: u32, data: &[u8]) {
        // inode mode uid gid links mtime size, device and rdevice (major, minor), length of the name with its NUL, checksum
        let fields = [inode, mode, 0, 0, 1, 0, narrow(data.len()), 0, 0, 0, 0, narrow(name.len() + 1), 0];
        self.bytes.extend_from_slice(MAGIC.as_bytes());
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(data);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

fn narrow(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::Archive;

    #[test]
    fn one_file_is_written_as_the_kernel_reads_it() {
        let mut archive = Archive::default();
        archive.add("a/b", 0o100_755, b"hello");
        let expected = concat!(
            "070701",
            "00000001",
            "000081ed",
            "00000000",
            "00000000",
            "00000001",
            "00000000",
            "00000005",
            "00000000",
            "00000000",
            "00000000",
            "00000000",
            "00000004",
            "00000000",
            "a/b\0\0\0",
            "hello\0\0\0",
            "070701",
            "00000000",
            "00000000",
            "00000000",
            "00000000",
            "00000001",
            "00000000",
            "00000000",
            "00000000",
            "00000000",
            "00000000",
            "00000000",
            "0000000b",
            "00000000",
            "TRAILER!!!\0\0\0\0",
        );
        assert_eq!(String::from_utf8(archive.finish()).unwrap(), expected);
    }

    #[test]
    fn every_member_starts_on_a_multiple_of_four() {
        let mut archive = Archive::default();
        for length in 0..9 {
            archive.add(&"n".repeat(length + 1), 0o100_644, &vec![b'x'; length]);
            assert_eq!(archive.bytes.len() % 4, 0);
        }
    }
}

//! The files of the content and their sizes. Pure.

/// The classes of the SPECweb2005 Support download files: the files per directory, the size of the first in bytes, and the step to each
/// next file (from the benchmark's file generator).
const CLASSES: [(u64, u64, u64); 6] = [
    (5, 104_858, 104_858),
    (3, 629_146, 125_829),
    (4, 1_048_576, 492_831),
    (2, 4_194_304, 1_352_663),
    (1, 9_992_929, 0),
    (1, 37_748_736, 0),
];
/// The clients per directory. SPECweb2005 has four per directory. This is the paper's experiment scaled 1 to 10: ten times as many clients
/// for the same bytes, 1.7 MB each, with the original file sizes.
const CLIENTS_PER_DIRECTORY: u32 = 40;
/// The files of one directory.
pub const PER_DIRECTORY: usize = 16;

/// A file of the content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSpec {
    /// The path relative to the content's root, with plain characters only.
    pub path: String,
    /// Its size.
    pub bytes: u64,
}

/// The files for `clients` clients: complete directories with the benchmark's class mix. If the clients do not fill complete directories,
/// all files are scaled by the same factor, so that the total is 1.7 MB per client.
pub fn files(clients: u32) -> Vec<FileSpec> {
    let directories = (clients.saturating_add(CLIENTS_PER_DIRECTORY / 2) / CLIENTS_PER_DIRECTORY).max(1);
    let factor = f64::from(clients) / (f64::from(directories) * f64::from(CLIENTS_PER_DIRECTORY));
    let sizes: Vec<u64> = sizes().collect();
    let of = |directory| {
        sizes.iter().enumerate().map(move |(number, size)| FileSpec {
            path: format!("dir{directory:04}/download{number:02}"),
            bytes: ((*size as f64 * factor).round() as u64).max(1),
        })
    };
    (0..directories).flat_map(of).collect()
}

/// The sizes of one directory's files.
fn sizes() -> impl Iterator<Item = u64> {
    CLASSES.into_iter().flat_map(|(count, first, step)| (0..count).map(move |i| first + step * i))
}

/// The total bytes of the files.
pub fn total(files: &[FileSpec]) -> u64 {
    files.iter().map(|f| f.bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_the_benchmarks() {
        assert_eq!((sizes().count(), sizes().sum::<u64>()), (PER_DIRECTORY, 68_472_021));
    }

    #[test]
    fn every_client_has_its_share() {
        for (clients, directories) in [(1000, 25), (2176, 54), (58, 1), (5, 1), (1, 1), (60, 2)] {
            let files = files(clients);
            assert_eq!(files.len(), directories * PER_DIRECTORY, "{clients}");
            let per_client = total(&files) as f64 / f64::from(clients);
            assert!((per_client - 1_711_800.5).abs() < 20.0, "{clients}: {per_client}");
        }
        assert_eq!(files(1000)[15].bytes, 37_748_736, "the original size");
    }
}

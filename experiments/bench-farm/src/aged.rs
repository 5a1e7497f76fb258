//! Files that are as old as those of a real origin: the tier takes none that changed within the last minute.

use std::fs::File;
use std::io::Write;
use std::process::Command;

use eke_bench_core::command::output;
use eke_bench_core::fault::{self, on};
use eke_bench_web::content::{Content, FileSystem};

use crate::error::Result;

/// When all files changed last, as debugfs(8) takes it, and as its `stat` shows it.
const CHANGED: (&str, &str) = ("20260101000000", "ctime: 0x6955b900:");

/// Sets the times of all files in the ext4 image, which is not mounted. Only debugfs can set a ctime.
///
/// # Errors
/// debugfs fails, or a file does not have its time then: debugfs exits with 0 whatever came of its requests.
pub fn age(content: &Content) -> Result<()> {
    let image = content.image(FileSystem::Ext4);
    let requests = image.with_extension("requests");
    let file = File::create_new(&requests);
    file.and_then(|mut file| file.write_all(lines(content).as_bytes())).map_err(on("write", &requests))?;
    let mut command = Command::new("debugfs");
    command.env("TZ", "UTC").arg("-w").arg("-f").arg(&requests).arg(&image);
    let shown = output(&mut command)?;
    std::fs::remove_file(&requests).map_err(on("remove", &requests))?;
    let set = shown.lines().filter(|line| line.trim_start().starts_with(CHANGED.1)).count();
    if set == content.files.len() {
        return Ok(());
    }
    let why = format!("set the time of {set} of {} files", content.files.len());
    Err(fault::Command::new(&command, why).into())
}

fn lines(content: &Content) -> String {
    let of_file = |path: &str| {
        let time = CHANGED.0;
        format!("set_inode_field /{path} mtime {time}\nset_inode_field /{path} ctime {time}\nstat /{path}\n")
    };
    content.files.iter().map(|file| of_file(&file.path)).collect()
}

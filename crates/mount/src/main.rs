//! `eke-cache`: serves a compressed page cache over one directory. Started by `eke cache mount`.

fn main() -> std::process::ExitCode {
    eprintln!("eke-cache is started by `eke cache mount DIR`");
    std::process::ExitCode::from(2)
}

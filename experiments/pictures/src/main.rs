//! `eke-pictures DIR` writes the pictures into DIR. `eke-pictures --table` prints the README's table. Run both in the
//! repository's root.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use eke_pictures::theme::Theme;
use eke_pictures::{cast, gains, remedies, screen};

fn main() -> Result<()> {
    let argument = std::env::args().nth(1).context("usage: eke-pictures DIR | --table")?;
    let results = Path::new("docs/results");
    if argument == "--table" {
        print!("{}", gains::table(results)?);
        return Ok(());
    }
    write_all(results, Path::new(&argument))
}

fn write_all(results: &Path, directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory)?;
    for theme in Theme::ALL {
        let write = |name: &str, svg: String| {
            let file = directory.join(format!("{name}-{}.svg", theme.name()));
            let opened = OpenOptions::new().write(true).create(true).truncate(true).open(&file);
            opened
                .and_then(|mut opened| opened.write_all(svg.as_bytes()))
                .with_context(|| format!("{} cannot be written", file.display()))
        };
        write("gains", gains::picture(results, theme)?)?;
        write("top", screen::picture(theme)?)?;
        if let Some(cast) = cast::picture(results, theme)? {
            write("cast", cast)?;
        }
        for remedy in &remedies::ALL {
            write(remedy.name, remedies::picture(results, remedy, theme)?)?;
        }
    }
    Ok(())
}

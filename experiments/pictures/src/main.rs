//! `eke-pictures DIR` writes the pictures into DIR. `eke-pictures --table` prints the README's table. `eke-pictures --measurements` writes the
//! measurements of stored results into the pages, and fails if a page has others. Run all in the repository's root.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use eke_pictures::theme::Theme;
use eke_pictures::{cast, gains, measurements, remedies, screen};

fn main() -> Result<()> {
    let argument = std::env::args().nth(1).context("usage: eke-pictures DIR | --table | --measurements")?;
    let results = Path::new("docs/results");
    if argument == "--table" {
        print!("{}", gains::table(results)?);
        return Ok(());
    }
    if argument == "--measurements" {
        return write_measurements(Path::new("."));
    }
    write_all(results, Path::new(&argument))
}

fn write_all(results: &Path, directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory)?;
    for theme in Theme::ALL {
        let write =
            |name: &str, svg: String| write(&directory.join(format!("{name}-{}.svg", theme.name())), &svg);
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

fn write_measurements(repository: &Path) -> Result<()> {
    let mut faults = Vec::new();
    for page in measurements::check(repository)? {
        if page.right != page.text {
            println!("{}: measurements changed", page.page);
            write(&repository.join(&page.page), &page.right)?;
        }
        faults.extend(page.faults.into_iter().map(|fault| format!("{}: {fault}", page.page)));
    }
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(())
}

fn write(file: &Path, text: &str) -> Result<()> {
    let opened = OpenOptions::new().write(true).create(true).truncate(true).open(file);
    opened
        .and_then(|mut opened| opened.write_all(text.as_bytes()))
        .with_context(|| format!("{} cannot be written", file.display()))
}

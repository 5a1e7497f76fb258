//! The systemd unit of one cache: systemd.service(5), systemd.unit(5), systemd.syntax(7).

use super::CacheAtBoot;
use eke_linux::error::{Error, Result};
use eke_linux::systemd::escaped_path;

/// The unit; the words between `@` are replaced.
pub const UNIT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../units/eke-cache.service.in"));
/// The longest name of a unit with its type (`UNIT_NAME_MAX`).
const LONGEST: usize = 255;

/// The unit's name and text.
///
/// # Errors
/// A path that a unit cannot have.
pub fn of(bin_dir: &str, cache: &CacheAtBoot) -> Result<(String, String)> {
    let name = name(&cache.place)?;
    let mut paths = vec![cache.dir.as_str()];
    paths.extend((cache.place != cache.dir).then_some(cache.place.as_str()));
    for path in &paths {
        check(path)?;
    }
    for path in &cache.needs {
        check(path)?;
    }
    let needed: Vec<&str> = paths.iter().copied().chain(cache.needs.iter().map(String::as_str)).collect();
    let each = |paths: &[&str], quote: fn(&str) -> String| {
        paths.iter().map(|path| quote(path)).collect::<Vec<_>>().join(" ")
    };
    let options: Vec<String> = cache.options.iter().map(|option| argument(&format!("--{option}"))).collect();
    let text = UNIT
        .replace("@BIN@", bin_dir.trim_end_matches('/'))
        .replace("@SHOWN@", &specifiers(&cache.place))
        .replace("@TARGET@", if cache.is_remote { "remote-fs.target" } else { "local-fs.target" })
        .replace("@OPTIONS@ ", &options.iter().map(|option| format!("{option} ")).collect::<String>())
        .replace("@PATHS@", &each(&needed, quoted))
        .replace("@ARGUMENTS@", &each(&paths, argument));
    Ok((name, text))
}

/// `eke-cache-srv-www.service`, by the rules of systemd-escape(1) for paths.
///
/// # Errors
/// The name would be too long.
pub fn name(place: &str) -> Result<String> {
    let name = format!("eke-cache-{}.service", escaped_path(place));
    if name.len() <= LONGEST { Ok(name) } else { Err(refused(place, "it is too long for a unit's name")) }
}

fn check(path: &str) -> Result<()> {
    if path.chars().any(char::is_control) {
        return Err(refused(path, "it has control characters"));
    }
    Ok(())
}

fn refused(path: &str, why: &str) -> Error {
    Error::Refused(format!("no systemd unit can mount a cache at \"{}\": {why}", path.escape_debug()))
}

/// `%` begins a specifier.
fn specifiers(text: &str) -> String {
    text.replace('%', "%%")
}

/// One word of a list.
fn quoted(text: &str) -> String {
    format!("\"{}\"", specifiers(&text.replace('\\', "\\\\").replace('"', "\\\"")))
}

/// One word of a command line, where `$` begins a variable.
fn argument(text: &str) -> String {
    quoted(text).replace('$', "$$")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(dir: &str, place: &str) -> CacheAtBoot {
        let options = vec!["memory=50%".into(), "no-watch".into()];
        CacheAtBoot { dir: dir.into(), place: place.into(), options, needs: Vec::new(), is_remote: false }
    }

    #[test]
    fn a_unit_is_named_as_systemd_escapes() {
        assert_eq!(name("/srv/www").unwrap(), "eke-cache-srv-www.service");
        assert_eq!(name("/").unwrap(), "eke-cache--.service");
        assert_eq!(name("/.a b-c/ü/").unwrap(), "eke-cache-\\x2ea\\x20b\\x2dc-\\xc3\\xbc.service");
        assert!(name(&"/x".repeat(200)).is_err());
    }

    #[test]
    fn paths_with_any_characters_are_quoted() {
        let (_, text) = of("/usr/bin", &cache("/a \"b\" 100% $HOME\\", "/a")).unwrap();
        let line = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        assert_eq!(line("RequiresMountsFor="), r#""/a \"b\" 100%% $HOME\\" "/a""#);
        let start = r#"/usr/bin/eke cache mount --foreground "--memory=50%%" "--no-watch" "/a \"b\" 100%% $$HOME\\" "/a""#;
        assert_eq!(line("ExecStart="), start);
        assert!(!text.contains("@"), "{text}");
        assert!(of("/usr/bin", &cache("/a\nExecStart=/bin/sh", "/a")).is_err());
        let needs = |path: &str| CacheAtBoot { needs: vec![path.into()], ..cache("/a", "/a") };
        assert!(of("/usr/bin", &needs("/ssd\nExecStart=/bin/sh")).is_err());
        let (_, text) = of("/usr/bin", &needs("/ssd/a 1%")).unwrap();
        assert!(text.contains("RequiresMountsFor=\"/a\" \"/ssd/a 1%%\"\n"), "{text}");
    }

    #[test]
    fn the_order_follows_the_file_system() {
        let remote = CacheAtBoot { is_remote: true, options: Vec::new(), ..cache("/nfs", "/nfs") };
        let (_, text) = of("/usr/bin", &remote).unwrap();
        assert!(
            text.contains("\nAfter=remote-fs.target\n") && text.contains("--foreground \"/nfs\"\n"),
            "{text}"
        );
        assert!(of("/usr/bin", &cache("/a", "/a")).unwrap().1.contains("\nAfter=local-fs.target\n"));
    }
}

//! The line of one cache in `/etc/fstab` (fstab(5)), and the text with and without it. Other lines keep every byte.

use super::CacheAtBoot;
use eke_linux::error::{Error, Result};
use eke_linux::parse::escape::unescape;

/// Behind the line, so that eke knows its own: a comment would be a line of its own.
const MARK: &str = "x-eke.enable";
const TYPE: &str = "fuse.eke-cache";

/// The line, without its end.
///
/// # Errors
/// A path with control characters.
pub(super) fn line(cache: &CacheAtBoot) -> Result<String> {
    let paths = [&cache.dir, &cache.place];
    if paths.into_iter().chain(&cache.needs).any(|path| path.chars().any(char::is_control)) {
        let shown = cache.place.escape_debug();
        return Err(Error::Refused(format!(
            "/etc/fstab cannot mount a cache at \"{shown}\": control characters"
        )));
    }
    if let Some(option) = cache.options.iter().find(|option| option.contains(',')) {
        let shown = option.escape_debug();
        return Err(Error::Refused(format!(
            "/etc/fstab cannot have the option \"{shown}\": a comma separates options there"
        )));
    }
    let mut options = vec!["nofail".to_owned()];
    options.extend(cache.is_remote.then(|| "_netdev".to_owned()));
    options.extend(cache.options.iter().map(|option| escaped(&underscored(option))));
    options.push(MARK.to_owned());
    let (dir, place) = (escaped(&cache.dir), escaped(&cache.place));
    Ok(format!("{dir}\t{place}\t{TYPE}\t{}\t0 0", options.join(",")))
}

/// The text without eke's line for this mount point.
pub(super) fn without(text: &str, place: &str) -> String {
    text.split_inclusive('\n').filter(|line| place_of(line).as_deref() != Some(place)).collect()
}

/// The mount points of eke's lines.
pub(super) fn places(text: &str) -> Vec<String> {
    text.lines().filter_map(place_of).collect()
}

/// The mount point, if the line is eke's.
fn place_of(line: &str) -> Option<String> {
    let mut fields = line.split_whitespace();
    let (_dir, place, kind, options) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let is_own = kind == TYPE
        && options.split(',').any(|option| option == MARK)
        && !line.trim_start().starts_with('#');
    is_own.then(|| String::from_utf8(unescape(place.as_bytes())).ok())?
}

/// The name of an option has underscores there, its value stays.
fn underscored(option: &str) -> String {
    let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
    let name = name.replace('-', "_");
    value.map_or(name.clone(), |value| format!("{name}={value}"))
}

fn escaped(path: &str) -> String {
    path.replace('\\', "\\134").replace(' ', "\\040").replace('\t', "\\011").replace('#', "\\043")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::shell::with_line;

    fn cache(place: &str) -> CacheAtBoot {
        let options = vec!["memory=2147483648".into(), "no-watch".into()];
        let (dir, needs) = ("/mnt/my disk".into(), Vec::new());
        CacheAtBoot { dir, place: place.into(), options, needs, is_remote: true }
    }

    #[test]
    fn a_line_comes_last_and_goes_without_a_trace() {
        let line = line(&cache("/srv/a b\\c#")).unwrap();
        let fields = "/mnt/my\\040disk\t/srv/a\\040b\\134c\\043\tfuse.eke-cache\tnofail,_netdev,memory=2147483648,no_watch,x-eke.enable\t0 0";
        assert_eq!(line, fields);
        for before in
            ["", "UUID=1 / ext4 defaults 0 1\n", "# a comment\n/dev/sda1 /mnt/my\\040disk ext4 noatime 0 2\n"]
        {
            let with = with_line(before, &line);
            assert_eq!(places(&with), ["/srv/a b\\c#"]);
            let two = with_line(&with, &super::line(&cache("/srv/two")).unwrap());
            assert_eq!(without(&two, "/srv/two"), with);
            assert_eq!(without(&with, "/srv/a b\\c#"), before);
        }
        assert!(with_line("no end", &line).starts_with("no end\n/mnt"));
    }

    #[test]
    fn lines_of_the_user_are_left_alone() {
        let text = "/a /b fuse.eke-cache nofail 0 0\n#/a /c fuse.eke-cache x-eke.enable 0 0\n/x /c ext4 x-eke.enable\n";
        assert_eq!(places(text), Vec::<String>::new());
        assert_eq!(without(text, "/b"), text);
        let control = CacheAtBoot { dir: "/a\n/b".into(), ..cache("/c") };
        assert!(line(&control).is_err());
        assert!(line(&CacheAtBoot { needs: vec!["/a\n/b".into()], ..cache("/c") }).is_err());
        let spill = |dir: &str| CacheAtBoot { options: vec![format!("spill={dir}")], ..cache("/c") };
        assert!(
            line(&spill("/ssd/a-b c"))
                .unwrap()
                .contains("\tnofail,_netdev,spill=/ssd/a-b\\040c,x-eke.enable\t")
        );
        assert!(line(&spill("/ssd,ro")).is_err());
    }
}

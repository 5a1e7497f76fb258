//! The configuration files: their new text, writing them through the journal, and the undo.

use std::collections::BTreeSet;

use eke_apply::boot::{Undone, Written, ltsp as boot};
use eke_apply::files as journal;
use eke_apply::files::{Change, Outcome as Reverted};
use eke_link::measure::{Link as Measured, OwnBlock, Ssh, outlived};
use eke_link::parse::{config, ssh_config};
use eke_link::write::diff::diff;
use eke_link::write::{Setting, host_block, ltsp_section};
use eke_ltsp_conf as ltsp;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::putln;

use super::super::{Context, files};
use super::caller;
use crate::args::link::Link;
use crate::documents::{self, link as ours};

const OWNER: &str = "link";
const DROP_INS: &str = "etc/ssh/ssh_config.d";
const DROP_IN: &str = "etc/ssh/ssh_config.d/50-eke-link.conf";
/// ssh reads the first one that exists; openSUSE ships the second one alone.
const SSH_CONFIGS: [&str; 2] = ["etc/ssh/ssh_config", "usr/etc/ssh/ssh_config"];
const LTSP: &str = "etc/ltsp/ltsp.conf";
const REASON: &str = "the fastest cipher that is secure";

/// What to write, and the text of the files that it changes.
pub struct Output {
    write: bool,
    ltsp: bool,
    /// The drop-in's text.
    drop_in: String,
    /// The text of ltsp.conf.
    clients: String,
}

impl Output {
    /// Reads the files. Before the measurement this reports an error at once; after it, the text is what somebody may have written meanwhile.
    pub fn new(context: &Context, options: &Link) -> Outcome<Self> {
        if options.write {
            context.need_root("`eke link --write` writes /etc/ssh/ssh_config.d, which needs root").map_err(
                |f| {
                    f.hint("without --write eke prints the Host block, which you can copy into ~/.ssh/config")
                },
            )?;
            check_include(context)?;
        }
        if options.ltsp {
            context.need_root("`eke link --ltsp` writes /etc/ltsp/ltsp.conf, which needs root")?;
        }
        Ok(Self {
            write: options.write,
            ltsp: options.ltsp,
            drop_in: journal::read(&context.root, DROP_IN)?.unwrap_or_default(),
            clients: if options.ltsp { clients(context)? } else { String::new() },
        })
    }

    /// Adds the new text of the files to the document; without an output option, that of --write.
    pub fn fill(&self, document: &mut ours::Link) -> Outcome<()> {
        if self.write || !self.ltsp {
            let text = self.drop_in(document)?;
            document.files.push(file(DROP_IN, &self.drop_in, &text));
        }
        if self.ltsp {
            let (text, notes) = self.clients(document)?;
            document.notes.extend(notes);
            document.files.push(file(LTSP, &self.clients, &text));
        }
        Ok(())
    }

    fn drop_in(&self, document: &ours::Link) -> Outcome<String> {
        links(document).try_fold(self.drop_in.clone(), |text, link| {
            host_block::with_block(&text, &link.host, &setting(link, &about(link)))
                .map_err(|why| Failure::new(Status::Failed, format!("/{DROP_IN}: {why}")))
        })
    }

    fn clients(&self, document: &ours::Link) -> Outcome<(String, Vec<String>)> {
        let mut text = self.clients.clone();
        let mut notes = Vec::new();
        for link in links(document) {
            let Some(mac) = mac(link) else {
                notes.push(format!(
                    "{} is left out of ltsp.conf: its hardware address is unknown here (it is behind a proxy, or not Linux)",
                    link.host
                ));
                continue;
            };
            text = ltsp_section::with_options(&text, &mac, &setting(link, &about(link)))
                .map_err(|e| broken(&e))?;
        }
        notes.extend(links(document).filter_map(|link| overruled(&text, link)));
        notes.push("run `ltsp initrd` and restart the clients: they read ltsp.conf at boot".to_owned());
        Ok((text, notes))
    }

    /// Fails if a file is no longer the one that the shown diff changes.
    fn check_unchanged(&self, context: &Context) -> Outcome<()> {
        let shown = [(self.write, DROP_IN, &self.drop_in), (self.ltsp, LTSP, &self.clients)];
        for (_, path, text) in shown.into_iter().filter(|(is_written, ..)| *is_written) {
            if journal::read(&context.root, path)?.unwrap_or_default() != *text {
                return Err(Failure::new(
                    Status::Failed,
                    format!("/{path} changed after its difference was shown; nothing was written"),
                )
                .hint("try again"));
            }
        }
        Ok(())
    }

    /// Makes the changes if --write or --ltsp is given.
    pub fn write(&self, context: &Context, ssh: &Ssh, document: &mut ours::Link) -> Outcome<()> {
        if !self.write && !self.ltsp {
            if !context.json && document.files.iter().any(|f| !f.diff.is_empty()) {
                putln!(
                    "\nNothing was written. `sudo eke link --write` writes this block; --ltsp writes the options of LTSP clients."
                );
            }
            return Ok(());
        }
        let lock = journal::lock(&context.root)?;
        self.check_unchanged(context)?;
        let mut changes = Vec::new();
        if self.write {
            changes.push(Change::text(DROP_IN, self.drop_in(document)?));
        }
        if self.ltsp {
            changes.push(Change::text(LTSP, self.clients(document)?.0));
        }
        let applied = journal::apply(&context.root, OWNER, &changes, REASON)?;
        drop(lock);
        document.files.iter_mut().for_each(|f| f.written = true);
        if context.json {
            return Ok(());
        }
        putln!("");
        files::show_written(&Written { files: applied, ran: Vec::new(), to_run: Vec::new() });
        if self.write {
            check_effect(context, ssh, document);
        }
        putln!("`eke link --undo` or `eke down` restores the files.");
        Ok(())
    }
}

/// The block that an earlier `--write` wrote for this host, if ssh reads the system's configuration.
pub fn own_block(context: &Context, ssh: &Ssh, host: &str) -> Option<OwnBlock> {
    if ssh.config.is_some() {
        return None;
    }
    let text = context.root.read(DROP_IN).ok()?;
    let ciphers = host_block::own_ciphers(&text, host)?;
    let system = context.root.read(ssh_config_path(context)).ok()?;
    let mut others: Vec<String> = drop_ins(context)
        .filter(|path| path != DROP_IN && path.ends_with(".conf"))
        .map(|path| format!("/{path}"))
        .collect();
    others.sort();
    let macs = host_block::own_macs(&text, host).unwrap_or_default();
    Some(OwnBlock { ciphers, macs, rest: ssh_config::without_drop_in(&system, &others) })
}

/// What the blocks of earlier calls have beyond ssh's configuration of today, or that ssh does not tell; `None` without a block. It names no host, because
/// `eke report-bug` shows it.
pub fn beyond_policy(context: &Context) -> Option<BTreeSet<String>> {
    let text = context.root.read(DROP_IN).ok().filter(|_| context.root.is_host())?;
    let ssh = Ssh { as_user: caller::user(), ..Ssh::default() };
    let beyond = |host: &&str| {
        let own = own_block(context, &ssh, host)?;
        Some(outlived(&ssh, host, &own).unwrap_or_else(|_| vec!["ssh -G fails".to_owned()]))
    };
    let hosts = host_block::hosts(&text);
    (!hosts.is_empty()).then(|| hosts.iter().filter_map(beyond).flatten().collect())
}

/// The system-wide configuration that ssh reads.
fn ssh_config_path(context: &Context) -> &'static str {
    let found = SSH_CONFIGS.into_iter().find(|path| context.root.exists(path));
    found.unwrap_or(SSH_CONFIGS[0])
}

fn drop_ins(context: &Context) -> impl Iterator<Item = String> {
    let names = context.root.list(DROP_INS).unwrap_or_default();
    names.into_iter().map(|name| format!("{DROP_INS}/{name}"))
}

fn links(document: &ours::Link) -> impl Iterator<Item = &Measured> {
    document.hosts.iter().filter_map(|h| h.link.as_deref())
}

fn setting<'a>(link: &'a Measured, about: &'a str) -> Setting<'a> {
    let compression = link.x11.as_ref().and_then(|x| x.compression).map(|c| c.is_advised);
    Setting { ciphers: &link.decision.ciphers, macs: &link.decision.macs, compression, about }
}

fn about(link: &Measured) -> String {
    let d = &link.decision;
    format!("{}, {:.0} MB/s; the limit was {} (policy {})", d.chosen, d.mb_per_s, d.limit, link.ends.policy)
}

/// Why the new ltsp.conf has no effect on this client.
fn overruled(text: &str, link: &Measured) -> Option<String> {
    let address = link.ends.there.connection.map(|(_, own)| own.to_canonical().to_string());
    let why = ltsp_section::overruled(text, &mac(link)?, address)?;
    Some(format!("the options of {} in its own section have no effect: /{LTSP}, {why}", link.host))
}

/// The hardware address of the far end's interface of this connection.
fn mac(link: &Measured) -> Option<String> {
    let (_, own) = link.ends.there.connection?;
    link.ends.there.interface(own)?.mac.clone()
}

fn file(path: &str, before: &str, after: &str) -> ours::File {
    let path = format!("/{path}");
    ours::File { diff: diff(&path, before, after), path, written: false }
}

/// Fails if ssh_config does not include the drop-ins.
fn check_include(context: &Context) -> Outcome<()> {
    let path = ssh_config_path(context);
    let text = journal::read(&context.root, path)?.unwrap_or_default();
    if ssh_config::includes_drop_ins(&text) {
        return Ok(());
    }
    Err(Failure::new(Status::Failed, format!("/{path} does not include /etc/ssh/ssh_config.d, so a file there would have no effect"))
        .hint(format!("add this line at its top (OpenSSH 7.3 or newer): Include /etc/ssh/ssh_config.d/*.conf; or copy the block that `eke link` prints into /{path}")))
}

/// The text of ltsp.conf, if it exists and can be parsed.
fn clients(context: &Context) -> Outcome<String> {
    let text = journal::read(&context.root, LTSP)?.ok_or_else(|| {
        Failure::new(Status::Failed, format!("there is no /{LTSP} here"))
            .hint("run this on the LTSP server, with its clients as HOST; `ltsp` makes the file: install -m 0660 -g sudo /usr/share/ltsp/common/ltsp/ltsp.conf /etc/ltsp/ltsp.conf")
    })?;
    ltsp::entries(&text).map_err(|e| broken(&e))?;
    Ok(text)
}

fn broken(error: &ltsp::ParseError) -> Failure {
    Failure::new(Status::Failed, format!("/{LTSP}, {error}"))
        .hint("nothing was changed; repair that line, then try again")
}

/// Warns if ssh uses another cipher: it takes the first value that it reads, and reads a user's own file first.
fn check_effect(context: &Context, ssh: &Ssh, document: &ours::Link) {
    if !context.root.is_host() || ssh.config.is_some() {
        return;
    }
    for link in links(document) {
        let Ok(now) = ssh.ask(&["-G", "--", &link.host]) else { continue };
        let first = config::config(&now).ciphers.first().cloned().unwrap_or_default();
        if first != link.decision.chosen.cipher {
            putln!(
                "note: ssh still prefers {first} for {}: {}",
                link.host,
                whose(context, ssh, host_block::pattern(&link.host))
            );
        }
    }
}

/// The other file that sets the ciphers of a host.
fn whose(context: &Context, ssh: &Ssh, host: &str) -> String {
    let users = ssh.as_user.as_ref().and_then(|user| user.home.clone());
    let home = users.unwrap_or_else(|| std::env::var_os("HOME").unwrap_or_default().into());
    let own = format!("{}/.ssh/config", home.display().to_string().trim_start_matches('/'));
    let all = std::iter::once(own)
        .chain(drop_ins(context))
        .filter(|path| path != DROP_IN)
        .chain([ssh_config_path(context).to_owned()]);
    let found = all.into_iter().find_map(|path| {
        let text = context.root.read(&path).ok()?;
        ssh_config::ciphers_set(&text, host).map(|(line, _)| {
            format!("/{path}, line {line}, sets Ciphers too, and ssh uses the first value that it reads")
        })
    });
    found.unwrap_or_else(|| {
        "another file sets Ciphers too, and ssh uses the first value that it reads".to_owned()
    })
}

/// `--undo`.
pub fn undo(context: &Context) -> Outcome {
    context.need_root("restoring /etc/ssh/ssh_config.d and ltsp.conf needs root")?;
    let undone = boot::undo_conf(&context.root, OWNER)?;
    if context.json {
        let (restored, kept) = lines(&undone);
        context.print_json(&ours::Undo { restored, kept })?;
        return Ok(Status::Done);
    }
    if undone == Undone::default() {
        putln!("Nothing to undo: eke has written no ciphers.");
    }
    files::show_undone(&undone);
    Ok(Status::Done)
}

/// `--undo` as a part of `eke down`.
pub fn undo_all(context: &Context, document: &mut documents::Down) {
    match boot::undo_conf(&context.root, OWNER) {
        Ok(undone) => {
            let (restored, kept) = lines(&undone);
            document.restored.extend(restored);
            document.kept.extend(kept);
        }
        Err(e) => document.blocked.push(format!("the ciphers of `eke link`: {e}")),
    }
}

/// What was restored, the commands for it included, and what was left alone.
fn lines(undone: &Undone) -> (Vec<String>, Vec<String>) {
    let (mut restored, mut kept) = (Vec::new(), Vec::new());
    for file in &undone.files {
        match &file.outcome {
            Reverted::Restored => restored.push(format!("/{} is as it was", file.path)),
            Reverted::Removed => restored.push(format!("removed /{}", file.path)),
            Reverted::Kept(why) => kept.push(format!("/{}: {why}", file.path)),
            Reverted::Unchanged => {}
        }
    }
    restored.extend(undone.ran.iter().map(|c| format!("ran {c} ({})", c.why)));
    restored.extend(undone.to_run.iter().map(|c| format!("to run on that system: {c} ({})", c.why)));
    (restored, kept)
}

#[cfg(test)]
mod tests {
    use eke_linux::Root;
    use eke_model::config::Settings;

    use super::*;

    /// As on openSUSE.
    #[test]
    fn a_vendors_ssh_config_counts_where_the_administrator_has_none() {
        let dir = tempfile::tempdir().unwrap();
        let context =
            Context { root: Root::at(dir.path()), json: false, settings: Settings::default(), config: None };
        let hint = |context: &Context| format!("{:?}", check_include(context));
        assert!(hint(&context).contains("/etc/ssh/ssh_config does not include"), "{}", hint(&context));
        eke_testkit::tree::put(dir.path(), SSH_CONFIGS[1], "Include /etc/ssh/ssh_config.d/*.conf\nPort 7\n");
        check_include(&context).unwrap();
        let block = "# eke link: begin web1\nHost web1\n    Ciphers a\n# eke link: end web1\n";
        eke_testkit::tree::put(dir.path(), DROP_IN, block);
        assert!(own_block(&context, &Ssh::default(), "web1").unwrap().rest.ends_with("Port 7\n"));
        eke_testkit::tree::put(dir.path(), SSH_CONFIGS[0], "Port 8\n");
        assert!(check_include(&context).is_err(), "ssh reads this one alone");
    }

    #[test]
    fn ekes_own_block_is_taken_out_of_the_configuration() {
        let dir = tempfile::tempdir().unwrap();
        let context =
            Context { root: Root::at(dir.path()), json: false, settings: Settings::default(), config: None };
        let ssh = Ssh::default();
        assert_eq!(own_block(&context, &ssh, "web1"), None);
        let block = "# eke link: begin web1\nHost web1\n    Ciphers a,b\n# eke link: end web1\n";
        eke_testkit::tree::put(dir.path(), DROP_IN, block);
        eke_testkit::tree::put(dir.path(), "etc/ssh/ssh_config.d/60-hardening.conf", "Ciphers b\n");
        eke_testkit::tree::put(dir.path(), SSH_CONFIGS[0], "Include /etc/ssh/ssh_config.d/*.conf\n");
        let own = own_block(&context, &ssh, "web1").unwrap();
        assert_eq!(own.ciphers, ["a", "b"]);
        assert!(own.rest.starts_with("Include ~/.ssh/config\n"), "{}", own.rest);
        assert!(
            own.rest.ends_with("\nInclude \"/etc/ssh/ssh_config.d/60-hardening.conf\"\n"),
            "{}",
            own.rest
        );
        assert_eq!(own_block(&context, &ssh, "web2"), None);
        let elsewhere = Ssh { config: Some("/other".into()), ..Ssh::default() };
        assert_eq!(own_block(&context, &elsewhere, "web1"), None);
    }

    #[test]
    fn a_file_that_changed_after_its_diff_was_made_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let context = Context { root, json: false, settings: Settings::default(), config: None };
        eke_testkit::tree::put(dir.path(), LTSP, "[clients]\nA=2\n");
        let of = |clients: &str| Output {
            write: false,
            ltsp: true,
            drop_in: String::new(),
            clients: clients.to_owned(),
        };
        let write = |clients: &str| of(clients).write(&context, &Ssh::default(), &mut ours::Link::default());
        let refused = write("[clients]\nA=1\n").unwrap_err().to_string();
        assert!(refused.contains("/etc/ltsp/ltsp.conf changed after its difference was shown"), "{refused}");
        write("[clients]\nA=2\n").unwrap();
    }
}

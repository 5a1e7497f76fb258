//! nginx: files by sendfile(2) in threads, so that a request that waits for the disk does not delay others.

use std::path::{Path, PathBuf};
use std::process::Command;

use eke_bench_core::fault::Missing;

use super::{Settings, clean, find, put};
use crate::error::Result;

/// The set-up, for the report.
pub const ABOUT: &str =
    "nginx: 2 workers, sendfile in threads (aio threads), no access log, no open_file_cache";

pub(super) fn program() -> Result<PathBuf> {
    find("nginx").ok_or_else(|| Missing::new("nginx", "this experiment needs", "nginx").into())
}

pub(super) fn command(settings: &Settings) -> Result<Command> {
    let program = program()?;
    let file = settings.own.join("nginx.conf");
    put(&file, &config(settings))?;
    let mut command = clean(&program);
    command.arg("-e").arg("stderr").arg("-p").arg(settings.own).arg("-c").arg(file);
    Ok(command)
}

fn config(settings: &Settings) -> String {
    let Settings { content, own, port, connections } = settings;
    let body = format!("server {{ listen 127.0.0.1:{port}; root \"{}\"; }}", content.display());
    with_body(own, connections + 64, &body)
}

/// A configuration with these lines within `http`; it writes only to `own`. The workers run as root, as the mounts do: they listen only where the
/// experiment's own clients are, and only read.
pub fn with_body(own: &Path, connections: usize, body: &str) -> String {
    let own = own.display();
    format!(
        r#"daemon off;
user root;
worker_processes 2;
pid {own}/nginx.pid;
error_log stderr warn;
events {{ worker_connections {connections}; }}
http {{
  access_log off;
  default_type application/octet-stream;
  sendfile on;
  sendfile_max_chunk 1m;
  aio threads;
  tcp_nopush on;
  keepalive_timeout 1h;
  keepalive_requests 1000000000;
  client_body_temp_path {own}/body;
  proxy_temp_path {own}/proxy;
  fastcgi_temp_path {own}/fastcgi;
  uwsgi_temp_path {own}/uwsgi;
  scgi_temp_path {own}/scgi;
  {body}
}}
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_local_and_writes_only_to_its_own_directory() {
        let (content, own) = ("/run/eke/c".as_ref(), "/run/eke/o".as_ref());
        let config = config(&Settings { content, own, port: 81, connections: 32 });
        assert!(config.contains("listen 127.0.0.1:81; root \"/run/eke/c\";"), "{config}");
        let paths = config.lines().filter(|l| l.contains("_path") || l.starts_with("pid"));
        assert_eq!(paths.filter(|l| l.contains(" /run/eke/o/")).count(), 6);
        assert_eq!(config.matches('{').count(), config.matches('}').count());
    }
}

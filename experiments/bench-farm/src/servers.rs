//! The configurations of nginx and Varnish. Pure.

use std::net::Ipv4Addr;
use std::path::Path;

use eke_bench_web::server::nginx::with_body;
use eke_model::units::Bytes;

use crate::hosts::HTTP;

/// What an nginx serves.
#[derive(Debug, Clone, Copy)]
pub enum Served<'a> {
    /// The files below a directory.
    Files(&'a Path),
    /// What another server has, kept in a directory.
    Proxied {
        /// The other server.
        origin: Ipv4Addr,
        /// The directory of the kept files.
        cache: &'a Path,
    },
}

/// The configuration of an nginx. It writes only to `own`. Its workers run as root, as the mounts do; only the farm's hosts can reach it.
pub fn nginx(address: Ipv4Addr, served: Served<'_>, own: &Path, connections: usize) -> String {
    let (before, location) = match served {
        Served::Files(dir) => (String::new(), format!("root \"{}\";", dir.display())),
        Served::Proxied { origin, cache } => (
            format!(
                "proxy_cache_path \"{}\" levels=1:2 keys_zone=farm:8m inactive=1d use_temp_path=off;\n  \
                 upstream origin {{ server {origin}:{HTTP}; keepalive 16; }}",
                cache.display()
            ),
            "proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection \"\"; \
             proxy_cache farm; proxy_cache_valid 200 1d; proxy_cache_lock on;"
                .to_owned(),
        ),
    };
    let body = format!("{before}\n  server {{ listen {address}:{HTTP}; location / {{ {location} }} }}");
    with_body(own, 2 * connections + 64, &body)
}

/// Varnish's share of its node's memory, in percent: the rest are its threads, and what its allocator wastes.
const VARNISH_PERCENT: u64 = 40;

/// For Debian's varnishd, which has jemalloc (jemalloc(3)): it gives freed memory back at once. By its defaults arenas and caches of the
/// threads keep it, and varnishd needs 138 MB for 38 MiB of content and 32 connections, more than a node has. So it needs 58 MB.
pub const VARNISH_MALLOC: &str = "narenas:1,tcache:false,dirty_decay_ms:0,muzzy_decay_ms:0";

/// The memory that Varnish may use for content.
pub fn varnish_memory(node: Bytes) -> Bytes {
    Bytes(node.0 * VARNISH_PERCENT / 100)
}

/// The arguments of varnishd.
pub fn varnish(address: Ipv4Addr, origin: Ipv4Addr, own: &Path, memory: Bytes) -> Vec<String> {
    let (content, address, origin) =
        (format!("default,{}", memory.0), format!("{address}:{HTTP}"), format!("{origin}:{HTTP}"));
    let own = own.join("varnish").to_string_lossy().into_owned();
    let args = [
        "-F",
        "-n",
        &own,
        "-a",
        &address,
        "-b",
        &origin,
        "-s",
        &content,
        "-s",
        "Transient=malloc,8m",
        "-t",
        "86400",
        "-l",
        "2m",
        "-j",
        "none",
        "-p",
        "timeout_idle=3600",
        "-p",
        "thread_pool_min=20",
    ];
    args.map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_listens_in_the_farm_and_writes_only_to_its_own_directory() {
        let own = Path::new("/run/eke/o");
        let served = [
            Served::Files(Path::new("/run/eke/c")),
            Served::Proxied { origin: Ipv4Addr::new(10, 78, 0, 1), cache: Path::new("/run/eke/o/kept") },
        ];
        for served in served {
            let config = nginx(Ipv4Addr::new(10, 78, 0, 11), served, own, 8);
            assert!(config.contains("listen 10.78.0.11:80;"), "{config}");
            assert_eq!(config.matches('{').count(), config.matches('}').count());
            let paths = config.lines().filter(|l| l.contains("_path ") || l.starts_with("pid"));
            assert!(
                paths.clone().count() >= 6 && paths.clone().all(|l| l.contains("/run/eke/o")),
                "{config}"
            );
        }
        let kept = nginx(Ipv4Addr::LOCALHOST, served[1], own, 8);
        assert!(kept.contains("server 10.78.0.1:80") && kept.contains("proxy_cache farm;"), "{kept}");
    }

    #[test]
    fn varnish_has_the_memory_of_its_node() {
        let memory = varnish_memory(Bytes::mib(100));
        let args = varnish(Ipv4Addr::LOCALHOST, Ipv4Addr::new(10, 78, 0, 1), Path::new("/o"), memory);
        assert!(args.contains(&format!("default,{}", 40 << 20)), "{args:?}");
        assert!(args.contains(&"10.78.0.1:80".to_owned()));
    }
}

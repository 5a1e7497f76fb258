//! Tomcat 10, alone: a CATALINA_BASE with nothing but one connector and the servlet for files.

use std::path::{Path, PathBuf};
use std::process::Command;

use eke_bench_core::fault::{Missing, on};

use super::{Wish, clean, find, put};
use crate::error::Result;

/// Debian's, and the foundation's own archive where people unpack it.
const HOMES: [&str; 3] = ["/usr/share/tomcat10", "/opt/tomcat", "/usr/share/tomcat"];
/// The JVM's heap: files go by sendfile, past it.
const HEAP_MIB: u32 = 64;
/// Threads that answer; each has one request at a time.
const LEAST_THREADS: usize = 25;

/// For the report.
pub(super) fn about() -> String {
    format!(
        "Tomcat 10: NIO connector with sendfile, the default servlet without resource cache, a JVM with {HEAP_MIB} MiB of heap and the serial collector"
    )
}

/// Java, and Tomcat's directory.
pub(super) fn programs() -> Result<(PathBuf, PathBuf)> {
    let missing = |program, package| Missing::new(program, "this experiment needs", package);
    let home = HOMES.iter().map(Path::new).find(|home| home.join("bin/bootstrap.jar").is_file());
    let home = home.ok_or_else(|| missing("tomcat10", "tomcat10"))?;
    let java = find("java").ok_or_else(|| missing("java", "default-jre-headless"))?;
    Ok((java, home.to_owned()))
}

pub(super) fn command(wish: &Wish) -> Result<Command> {
    let (java, home) = programs()?;
    let base = wish.own;
    put(&base.join("conf/server.xml"), &server_xml(wish))?;
    put(&base.join("conf/web.xml"), WEB_XML)?;
    for dir in ["temp", "work", "logs", "none"] {
        std::fs::create_dir_all(base.join(dir)).map_err(on("make", base))?;
    }
    let jar = |name: &str| home.join("bin").join(name).display().to_string();
    let mut command = clean(&java);
    command.args([format!("-Xms{HEAP_MIB}m"), format!("-Xmx{HEAP_MIB}m")]);
    command.args(["-XX:+UseSerialGC", "-XX:MaxMetaspaceSize=64m", "-Djava.awt.headless=true"]);
    command.arg(format!("-Dcatalina.home={}", home.display()));
    command.arg(format!("-Dcatalina.base={}", base.display()));
    command.arg(format!("-Djava.io.tmpdir={}", base.join("temp").display()));
    command.args(["-cp", &format!("{}:{}", jar("bootstrap.jar"), jar("tomcat-juli.jar"))]);
    command.args(["org.apache.catalina.startup.Bootstrap", "start"]);
    Ok(command)
}

/// No shutdown port, no deployment, one host with one context.
fn server_xml(wish: &Wish) -> String {
    let Wish { content, port, connections, .. } = wish;
    let (content, threads) = (content.display(), LEAST_THREADS.max(*connections));
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<Server port="-1">
  <Service name="Catalina">
    <Connector port="{port}" address="127.0.0.1" protocol="org.apache.coyote.http11.Http11NioProtocol"
      maxThreads="{threads}" maxConnections="10000" acceptCount="1000" maxKeepAliveRequests="-1"
      keepAliveTimeout="3600000" connectionTimeout="3600000" useSendfile="true"/>
    <Engine name="Catalina" defaultHost="localhost">
      <Host name="localhost" appBase="none" autoDeploy="false" deployOnStartup="false">
        <Context path="" docBase="{content}">
          <Resources cachingAllowed="false"/>
          <JarScanner scanClassPath="false" scanManifest="false"/>
        </Context>
      </Host>
    </Engine>
  </Service>
</Server>
"#
    )
}

const WEB_XML: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<web-app xmlns="https://jakarta.ee/xml/ns/jakartaee" version="5.0" metadata-complete="true">
  <servlet>
    <servlet-name>default</servlet-name>
    <servlet-class>org.apache.catalina.servlets.DefaultServlet</servlet-class>
    <init-param><param-name>listings</param-name><param-value>false</param-value></init-param>
    <init-param><param-name>sendfileSize</param-name><param-value>48</param-value></init-param>
    <load-on-startup>1</load-on-startup>
  </servlet>
  <servlet-mapping><servlet-name>default</servlet-name><url-pattern>/</url-pattern></servlet-mapping>
</web-app>
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_for_each_client_and_nothing_from_elsewhere() {
        let wish =
            Wish { content: "/run/eke/c".as_ref(), own: "/run/eke/o".as_ref(), port: 81, connections: 64 };
        let xml = server_xml(&wish);
        for part in [r#"port="81" address="127.0.0.1""#, r#"maxThreads="64""#, r#"docBase="/run/eke/c""#] {
            assert!(xml.contains(part), "{xml}");
        }
    }
}

//! Tomcat 10 with a minimal CATALINA_BASE: one connector and the servlet for files.

use std::path::{Path, PathBuf};
use std::process::Command;

use eke_bench_core::fault::{Missing, on};

use super::{Settings, clean, find, put};
use crate::error::Result;

/// The directories of Debian's package, and of the foundation's archive where people usually extract it.
const HOMES: [&str; 3] = ["/usr/share/tomcat10", "/opt/tomcat", "/usr/share/tomcat"];
/// The JVM's heap. Files bypass it by sendfile.
const HEAP_MIB: u32 = 64;
/// The least threads for requests; each handles one request at a time.
const LEAST_THREADS: usize = 25;

/// The set-up, for the report.
pub(super) fn about() -> String {
    format!(
        "Tomcat 10: NIO connector with sendfile, the default servlet without resource cache, a JVM with {HEAP_MIB} MiB of heap and the serial collector"
    )
}

/// The paths of Java and of Tomcat's directory.
pub(super) fn programs() -> Result<(PathBuf, PathBuf)> {
    let missing = |program, package| Missing::new(program, "this experiment needs", package);
    let home = HOMES.iter().map(Path::new).find(|home| home.join("bin/bootstrap.jar").is_file());
    let home = home.ok_or_else(|| missing("tomcat10", "tomcat10"))?;
    let java = find("java").ok_or_else(|| missing("java", "default-jre-headless"))?;
    Ok((java, home.to_owned()))
}

pub(super) fn command(settings: &Settings) -> Result<Command> {
    let (java, home) = programs()?;
    let base = settings.own;
    put(&base.join("conf/server.xml"), &server_xml(settings))?;
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

/// The server's configuration: no shutdown port, no deployment, one host with one context.
fn server_xml(settings: &Settings) -> String {
    let Settings { content, port, connections, .. } = settings;
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
    fn each_client_has_a_thread_and_the_server_is_local() {
        let (content, own) = ("/run/eke/c".as_ref(), "/run/eke/o".as_ref());
        let xml = server_xml(&Settings { content, own, port: 81, connections: 64 });
        for part in [r#"port="81" address="127.0.0.1""#, r#"maxThreads="64""#, r#"docBase="/run/eke/c""#] {
            assert!(xml.contains(part), "{xml}");
        }
    }
}

//! Connections to the engine.

use std::time::Duration;

use eke_cache_mounts::engine_url::{EngineConfig, EngineKind};
use redis::cluster::{ClusterClient, ClusterClientBuilder, ClusterConnection};
use redis::sentinel::{SentinelClientBuilder, SentinelServerType};
use redis::{
    Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo, RedisError, RedisResult,
    TlsCertificates, TlsMode, Value,
};

/// How long a connection may take. It is made beside the asks.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);

/// How long an answer may take: longer than any reader waits, so that a connection is not given up for one late answer.
pub const ANSWER_WITHIN: Duration = Duration::from_millis(250);

/// Makes connections.
pub struct Connector {
    config: EngineConfig,
}

/// A connection.
pub enum Connection {
    /// To one engine.
    One(Box<redis::Connection>),
    /// To the nodes of a cluster.
    Cluster(Box<ClusterConnection>),
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.config.fmt(f)
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connector {
    /// A connector; it makes no connection yet.
    ///
    /// # Errors
    /// No TLS can be had.
    pub fn new(config: EngineConfig) -> Result<Self, String> {
        if config.url.tls && rustls::crypto::CryptoProvider::get_default().is_none() {
            let installed = rustls::crypto::ring::default_provider().install_default();
            installed.map_err(|_| "another TLS provider is in place".to_owned())?;
        }
        Ok(Self { config })
    }

    /// A new connection.
    ///
    /// # Errors
    /// What the library or the engine answers.
    pub fn connect(&self) -> RedisResult<Connection> {
        match &self.config.url.kind {
            EngineKind::Alone(db) => one(&self.alone(*db)?),
            EngineKind::Sentinel(name, db) => one(&self.named(name, *db)?),
            EngineKind::Cluster => {
                let connection = self.cluster()?.get_connection()?;
                connection.set_write_timeout(Some(ANSWER_WITHIN))?;
                Ok(Connection::Cluster(Box::new(connection)))
            }
        }
    }

    fn addresses(&self) -> impl Iterator<Item = ConnectionAddr> + '_ {
        self.config.url.hosts.iter().map(|(host, port)| {
            let (host, port) = (host.clone(), *port);
            if self.config.url.tls {
                ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None }
            } else {
                ConnectionAddr::Tcp(host, port)
            }
        })
    }

    fn settings(&self, db: i64) -> RedisConnectionInfo {
        let mut settings = RedisConnectionInfo::default().set_db(db).set_skip_set_lib_name();
        if let Some(user) = &self.config.url.user {
            settings = settings.set_username(user);
        }
        match &self.config.password {
            Some(password) => settings.set_password(password),
            None => settings,
        }
    }

    fn infos(&self, db: i64) -> RedisResult<Vec<ConnectionInfo>> {
        let infos = self.addresses().map(IntoConnectionInfo::into_connection_info);
        infos.map(|info| Ok(info?.set_redis_settings(self.settings(db)))).collect()
    }

    fn certificates(&self) -> Option<TlsCertificates> {
        let ca = self.config.ca.as_ref().filter(|_| self.config.url.tls)?;
        Some(TlsCertificates { client_tls: None, root_cert: Some(ca.clone().into_bytes()) })
    }

    fn alone(&self, db: i64) -> RedisResult<Client> {
        let first = self.infos(db)?.into_iter().next();
        let info =
            first.ok_or_else(|| RedisError::from((redis::ErrorKind::InvalidClientConfig, "no host")))?;
        match self.certificates() {
            Some(certificates) => Client::build_with_tls(info, certificates),
            None => Client::open(info),
        }
    }

    /// The master that a sentinel names. The sentinels have the same password.
    fn named(&self, name: &str, db: i64) -> RedisResult<Client> {
        let mut builder = SentinelClientBuilder::new(self.addresses(), name, SentinelServerType::Master)?
            .set_client_to_redis_db(db);
        if self.config.url.tls {
            builder = builder.set_client_to_redis_tls_mode(TlsMode::Secure);
            builder = builder.set_client_to_sentinel_tls_mode(TlsMode::Secure);
        }
        if let Some(user) = &self.config.url.user {
            builder = builder.set_client_to_redis_username(user);
        }
        if let Some(password) = &self.config.password {
            builder = builder.set_client_to_redis_password(password);
        }
        if let Some(certificates) = self.certificates() {
            builder = builder.set_client_to_redis_certificates(certificates.clone());
            builder = builder.set_client_to_sentinel_certificates(certificates);
        }
        builder.build()?.get_client()
    }

    fn cluster(&self) -> RedisResult<ClusterClient> {
        let mut builder = ClusterClientBuilder::new(self.infos(0)?)
            // The breaker retries; a reader does not wait for it.
            .retries(1)
            .min_retry_wait(1)
            .max_retry_wait(5)
            .connection_timeout(CONNECT_WITHIN)
            .response_timeout(ANSWER_WITHIN);
        if let Some(certificates) = self.certificates() {
            builder = builder.certs(certificates);
        }
        builder.build()
    }
}

fn one(client: &Client) -> RedisResult<Connection> {
    let connection = client.get_connection_with_timeout(CONNECT_WITHIN)?;
    connection.set_read_timeout(Some(ANSWER_WITHIN))?;
    connection.set_write_timeout(Some(ANSWER_WITHIN))?;
    Ok(Connection::One(Box::new(connection)))
}

impl Connection {
    /// The answers to these commands, in one go.
    ///
    /// # Errors
    /// What the library or the engine answers. Then the connection must not be used any more.
    pub fn query(&mut self, commands: &[redis::Cmd]) -> RedisResult<Vec<Value>> {
        match self {
            Self::One(connection) => {
                let mut pipe = redis::pipe();
                for command in commands {
                    pipe.add_command(command.clone());
                }
                pipe.query(connection)
            }
            Self::Cluster(connection) => {
                let mut pipe = redis::cluster::cluster_pipe();
                for command in commands {
                    pipe.add_command(command.clone());
                }
                pipe.query(connection)
            }
        }
    }

    /// The answers of all masters to a command.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub fn query_all(&mut self, command: &redis::Cmd) -> RedisResult<Vec<Value>> {
        use redis::cluster_routing::{MultipleNodeRoutingInfo, RoutingInfo};
        match self {
            Self::One(connection) => Ok(vec![command.query(connection)?]),
            Self::Cluster(connection) => {
                let all = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
                match connection.route_command(command, all)? {
                    Value::Map(answers) => Ok(answers.into_iter().map(|(_, answer)| answer).collect()),
                    Value::Array(answers) => Ok(answers),
                    other => Ok(vec![other]),
                }
            }
        }
    }
}

//! Connections to the engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use eke_cache_mounts::engine_url::{EngineConfig, EngineKind};
use redis::cluster::ClusterClientBuilder;
use redis::{
    Client, ClientTlsConfig, Cmd, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo,
    RedisError, RedisResult, TlsCertificates, Value,
};

use crate::cluster::Cluster;
use crate::lost::{Lost, To};
use crate::refusal::is_away;
use crate::sentinel;
use crate::within::{ANSWER_WITHIN, CONNECT_MEMBER_WITHIN, CONNECT_WITHIN};

/// A request, and the slot that it belongs to.
pub type Request = (u16, Cmd);

/// Makes connections.
pub struct Connector {
    config: EngineConfig,
    /// Connections to a cluster so far.
    begun: AtomicUsize,
    lost: Arc<Lost>,
}

/// A connection.
pub enum Connection {
    /// To one engine.
    One(Box<redis::Connection>),
    /// To the nodes of a cluster.
    Cluster(Box<Cluster>),
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
        Ok(Self { config, begun: AtomicUsize::new(0), lost: Arc::default() })
    }

    /// Whether the engine is a cluster.
    pub fn is_cluster(&self) -> bool {
        matches!(self.config.url.kind, EngineKind::Cluster)
    }

    /// A new connection. In a cluster it asks the members that `to` says.
    ///
    /// # Errors
    /// What the library or the engine answers.
    pub fn connect(&self, to: To) -> RedisResult<Connection> {
        match &self.config.url.kind {
            EngineKind::Alone(db) => one(&self.client(self.first()?, self.settings(*db))?),
            EngineKind::Sentinel(name, db) => one(&self.client(self.master(name)?, self.settings(*db))?),
            EngineKind::Cluster => {
                let cluster = Cluster::connect(self.cluster()?, &self.lost, to)?;
                Ok(Connection::Cluster(Box::new(cluster)))
            }
        }
    }

    fn addresses(&self) -> impl Iterator<Item = ConnectionAddr> + '_ {
        self.config.url.hosts.iter().map(|(host, port)| self.address(host.clone(), *port))
    }

    fn address(&self, host: String, port: u16) -> ConnectionAddr {
        if self.config.url.tls {
            ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None }
        } else {
            ConnectionAddr::Tcp(host, port)
        }
    }

    fn first(&self) -> RedisResult<ConnectionAddr> {
        let none = || RedisError::from((redis::ErrorKind::InvalidClientConfig, "no host"));
        self.addresses().next().ok_or_else(none)
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

    /// The named members, each time with another one first: the library asks them in this order, and a lost one keeps it waiting.
    fn infos(&self) -> RedisResult<Vec<ConnectionInfo>> {
        let infos = self.addresses().map(IntoConnectionInfo::into_connection_info);
        let with_settings = infos.map(|info| Ok(info?.set_redis_settings(self.settings(0))));
        let mut infos = with_settings.collect::<RedisResult<Vec<_>>>()?;
        let first = self.begun.fetch_add(1, Ordering::Relaxed) % infos.len().max(1);
        infos.rotate_left(first);
        Ok(infos)
    }

    /// `None`: this machine's authorities, and no certificate of this client.
    fn certificates(&self) -> Option<TlsCertificates> {
        let EngineConfig { url, ca, cert, private_key, .. } = &self.config;
        let bytes = |text: &String| text.clone().into_bytes();
        let client_tls = cert
            .as_ref()
            .zip(private_key.as_ref())
            .map(|(cert, key)| ClientTlsConfig { client_cert: bytes(cert), client_key: bytes(key) });
        let root_cert = ca.as_ref().map(bytes);
        (url.tls && (client_tls.is_some() || root_cert.is_some()))
            .then_some(TlsCertificates { client_tls, root_cert })
    }

    fn client(&self, address: ConnectionAddr, settings: RedisConnectionInfo) -> RedisResult<Client> {
        let info = address.into_connection_info()?.set_redis_settings(settings);
        match self.certificates() {
            Some(certificates) => Client::build_with_tls(info, certificates),
            None => Client::open(info),
        }
    }

    /// The master that a sentinel names.
    fn master(&self, name: &str) -> RedisResult<ConnectionAddr> {
        let without = RedisConnectionInfo::default().set_skip_set_lib_name();
        let client = |sentinel: &ConnectionAddr, password: bool| {
            self.client(sentinel.clone(), if password { self.settings(0) } else { without.clone() })
        };
        let (host, port) = sentinel::master(self.addresses(), name, client)?;
        Ok(self.address(host, port))
    }

    fn cluster(&self) -> RedisResult<ClusterClientBuilder> {
        let builder = ClusterClientBuilder::new(self.infos()?)
            // The breaker retries; a reader does not wait for it.
            .retries(0)
            .connection_timeout(CONNECT_MEMBER_WITHIN)
            .response_timeout(ANSWER_WITHIN);
        Ok(match self.certificates() {
            Some(certificates) => builder.certs(certificates),
            None => builder,
        })
    }
}

fn one(client: &Client) -> RedisResult<Connection> {
    let connection = client.get_connection_with_timeout(CONNECT_WITHIN)?;
    connection.set_read_timeout(Some(ANSWER_WITHIN))?;
    connection.set_write_timeout(Some(ANSWER_WITHIN))?;
    let mut connection = Connection::One(Box::new(connection));
    // TLS begins with the first command, which is none without a password.
    connection.query_masters(&redis::cmd("PING"))?;
    Ok(connection)
}

impl Connection {
    /// Sends these requests and passes each answer on as it comes, also a refusal by the engine. One engine gets them all at once, a cluster one
    /// after the other. It ends at the first answer that does not come: the library would wait for each.
    ///
    /// # Errors
    /// What the library says. Then the connection must not be used any more, unless it [survives](Connection::survives).
    pub fn query(
        &mut self,
        requests: &[Request],
        mut answer: impl FnMut(RedisResult<Value>),
    ) -> RedisResult<()> {
        match self {
            Self::One(connection) => {
                let mut bytes = Vec::new();
                requests.iter().for_each(|(_, command)| command.write_packed_command(&mut bytes));
                connection.send_packed_command(&bytes)?;
                for _ in requests {
                    answer(connection.recv_response()?.extract_error());
                }
            }
            Self::Cluster(cluster) => {
                for (slot, command) in requests {
                    match cluster.query(*slot, command) {
                        Err(e) if is_away(e.code()) => return Err(e),
                        given => answer(given),
                    }
                }
            }
        }
        Ok(())
    }

    /// The answers of all masters that live to a command.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub fn query_masters(&mut self, command: &Cmd) -> RedisResult<Vec<Value>> {
        match self {
            Self::One(connection) => Ok(vec![command.query(connection)?]),
            Self::Cluster(cluster) => cluster.query_masters(command),
        }
    }

    /// Whether an answer that did not come leaves it usable: the member is not asked over it any more, and others answer. Not so the single
    /// connection to one engine.
    pub fn survives(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    /// The connection to a cluster.
    pub fn cluster(&mut self) -> Option<&mut Cluster> {
        match self {
            Self::One(_) => None,
            Self::Cluster(cluster) => Some(cluster),
        }
    }
}

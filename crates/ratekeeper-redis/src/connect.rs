//! Connections with settings that fit a limiter: an answer or an error, soon.

use std::time::Duration;

use ratekeeper::store::{Namespace, StoreError};
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{Client, IntoConnectionInfo, ProtocolVersion};

use crate::error::store_error;
use crate::store::RedisStore;

/// Commands that may be under way at once before callers wait for the socket.
const PIPELINE_BUFFER: usize = 1024;

/// A peer that is silent for so long is gone: without this, the kernel keeps a dead connection for minutes.
const SILENCE: Duration = Duration::from_secs(5);

impl RedisStore<ConnectionManager> {
    /// A store over one multiplexed connection, which is made on first use and made again whenever it breaks.
    ///
    /// The settings are for a limiter, not the client library's: while Redis cannot be reached every call ends
    /// within the [deadline](Self::with_deadline), and after an outage the first calls try again at once. Nothing is ever sent
    /// twice.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](ratekeeper::store::ErrorKind::Config) if `url` is none. An unreachable server is none here, but
    /// one of the first request.
    ///
    /// ```no_run
    /// use ratekeeper::store::Namespace;
    /// use ratekeeper::{KeyedLimiter, TokenBucket};
    /// use ratekeeper_redis::RedisStore;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = RedisStore::connect("redis://127.0.0.1/", Namespace::new("api")?)?;
    /// let users = KeyedLimiter::<str, _, _>::with_store(TokenBucket::per_minute(100), store);
    /// let decision = users.check_async("alice").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn connect(url: impl IntoConnectionInfo, namespace: Namespace) -> Result<Self, StoreError> {
        let info = url.into_connection_info().map_err(store_error)?;
        let redis = info
            .redis_settings()
            .clone()
            .set_protocol(ProtocolVersion::RESP3);
        let info = info
            .set_redis_settings(redis)
            .set_tcp_settings(tcp_settings());
        let client = Client::open(info).map_err(store_error)?;
        let config = ConnectionManagerConfig::new()
            .set_number_of_retries(0)
            .set_min_delay(Duration::from_millis(1))
            .set_max_delay(Duration::from_millis(100))
            // The store's own deadline is what callers see; these free what it leaves behind.
            .set_connection_timeout(Some(Duration::from_secs(1)))
            .set_response_timeout(Some(SILENCE))
            .set_pipeline_buffer_size(PIPELINE_BUFFER);
        let manager =
            ConnectionManager::new_lazy_with_config(client, config).map_err(store_error)?;
        Ok(Self::new(manager, namespace))
    }
}

fn tcp_settings() -> TcpSettings {
    let keepalive = TcpKeepalive::new()
        .with_time(SILENCE)
        .with_interval(Duration::from_secs(1));
    let settings = TcpSettings::default()
        .set_nodelay(true)
        .set_keepalive(keepalive);
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    let settings = settings.set_user_timeout(SILENCE);
    settings
}

#[cfg(feature = "cluster")]
impl RedisStore<redis::cluster_async::ClusterConnection> {
    /// A store over a cluster, found through any of `nodes`. Each decision goes to the primary of its key's hash slot.
    ///
    /// # Errors
    /// What kept it from the cluster, which must be reachable.
    pub async fn connect_cluster<U: IntoConnectionInfo>(
        nodes: impl IntoIterator<Item = U>,
        namespace: Namespace,
    ) -> Result<Self, StoreError> {
        let client = redis::cluster::ClusterClientBuilder::new(nodes)
            .retries(0)
            .connection_timeout(Duration::from_secs(1))
            .response_timeout(SILENCE)
            .tcp_settings(tcp_settings())
            .build()
            .map_err(store_error)?;
        let connection = client.get_async_connection().await.map_err(store_error)?;
        Ok(Self::over_cluster(connection, namespace))
    }

    /// A store over a cluster connection of your own; give it no retries.
    pub fn over_cluster(
        connection: redis::cluster_async::ClusterConnection,
        namespace: Namespace,
    ) -> Self {
        let mut store = Self::new(connection, namespace);
        store.is_cluster = true;
        store
    }
}

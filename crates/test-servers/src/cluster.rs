//! A Redis or Valkey cluster.

use std::io;

use crate::kind::Kind;
use crate::options::Options;
use crate::server::Server;
use crate::wait;

/// How many hash slots every cluster has.
const SLOTS: usize = 16_384;

/// A running cluster of primaries, which ends when dropped.
///
/// ```
/// use ratekeeper_test_servers::{Cluster, Kind};
///
/// let cluster = Cluster::start(3, Kind::Redis);
/// let owner = cluster.owner_of("key");
/// assert_eq!(cluster.nodes()[owner].command(&["SET", "key", "value"]).unwrap(), "OK");
///
/// let another = (owner + 1) % 3;
/// let error = cluster.nodes()[another].command(&["SET", "key", "value"]).unwrap_err();
/// assert!(error.to_string().starts_with("MOVED"));
/// ```
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Server>,
}

impl Cluster {
    /// Starts that many primaries, which share the slots evenly, in order. Takes two seconds or three: a primary
    /// waits that long before it serves.
    ///
    /// # Panics
    /// If `primaries` is 0, `kind` is not like Redis, or the cluster is not in order within 15 seconds.
    #[track_caller]
    #[must_use]
    pub fn start(primaries: usize, kind: Kind) -> Self {
        Self::start_with(primaries, kind, Options::new())
    }

    /// Like [`start`](Self::start), with more arguments for each node, such as
    /// `--cluster-node-timeout 1000 --cluster-require-full-coverage no`.
    ///
    /// # Panics
    /// As `start` does.
    #[track_caller]
    #[must_use]
    pub fn start_with(primaries: usize, kind: Kind, options: Options) -> Self {
        assert!(kind.is_redis_like(), "{kind} has no clusters");
        assert!(
            (1..=SLOTS).contains(&primaries),
            "{primaries} nodes cannot share {SLOTS} slots"
        );
        let options = Options::new()
            .args([
                "--cluster-enabled",
                "yes",
                "--cluster-announce-ip",
                "127.0.0.1",
            ])
            .args(options.arguments().iter().cloned());
        let nodes = (0..primaries)
            .map(|_| Server::start(kind, options.clone()))
            .collect();
        let cluster = Self { nodes };
        if let Err(error) = cluster.join() {
            panic!("{kind} nodes do not form a cluster: {error}");
        }
        cluster.wait_until_ok();
        cluster
    }

    /// Its nodes, in the order of their slots.
    #[must_use]
    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// Its nodes, to be paused, killed or restarted.
    #[must_use]
    pub fn nodes_mut(&mut self) -> &mut [Server] {
        &mut self.nodes
    }

    /// `127.0.0.1:PORT` of each node.
    #[must_use]
    pub fn addresses(&self) -> Vec<String> {
        self.nodes.iter().map(Server::address).collect()
    }

    /// The index of the node that was given the key's slot. Asks the nodes: one must be up.
    ///
    /// # Panics
    /// If none answers.
    #[must_use]
    pub fn owner_of(&self, key: &str) -> usize {
        let slot = self.nodes.iter().find_map(|node| {
            node.command(&["CLUSTER", "KEYSLOT", key])
                .ok()?
                .parse::<usize>()
                .ok()
        });
        // The inverse of `slots`.
        ((slot.expect("no node answers") + 1) * self.nodes.len() - 1) / SLOTS
    }

    /// Returns when every node knows every other and serves: say, after a restart of one.
    ///
    /// # Panics
    /// If that takes more than 15 seconds.
    #[track_caller]
    pub fn wait_until_ok(&self) {
        for node in &self.nodes {
            let known = format!("cluster_known_nodes:{}", self.nodes.len());
            let ok = || {
                let info = node.command(&["CLUSTER", "INFO"]).ok()?;
                let has = |line: &str| info.lines().any(|one| one == line);
                (has("cluster_state:ok") && has("cluster_slots_ok:16384") && has(&known))
                    .then_some(())
            };
            if wait::until(wait::LIMIT, ok).is_none() {
                let info = node.command(&["CLUSTER", "INFO"]);
                panic!(
                    "the cluster's node {} is not ok: {info:?}\n{}",
                    node.address(),
                    node.log()
                );
            }
        }
    }

    /// Gives each node its slots and makes them know each other.
    fn join(&self) -> io::Result<()> {
        let first = self.nodes[0].port().to_string();
        for (index, node) in self.nodes.iter().enumerate() {
            let mut add = vec!["CLUSTER".to_owned(), "ADDSLOTS".to_owned()];
            add.extend(self.slots(index).map(|slot| slot.to_string()));
            node.command(&add)?;
            // Equal epochs are a conflict, which takes the nodes time to settle.
            node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()])?;
            if index > 0 {
                node.command(&["CLUSTER", "MEET", "127.0.0.1", &first])?;
            }
        }
        Ok(())
    }

    fn slots(&self, index: usize) -> std::ops::Range<usize> {
        let start = |index| SLOTS * index / self.nodes.len();
        start(index)..start(index + 1)
    }
}

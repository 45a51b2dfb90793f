//! The admin port of an app.

use std::sync::Arc;

use moldau_client::Cluster;

use super::App;
use crate::Result;
use crate::admin::{Port, Subject};
use crate::routes::Reads;

impl App {
    /// Reports topics that it names and cannot read. It reads them once it can.
    pub(crate) async fn tell_missing(&self, cluster: &Cluster) {
        let topics: Vec<_> = self.routes.named().map(|(topic, _)| &**topic).collect();
        if let Err(error) = cluster.load_topics(topics.iter().copied()).await {
            tracing::warn!(%error, "topics cannot be looked up");
            return;
        }
        let known = cluster.metadata();
        for topic in topics {
            if let Some(code) = known.refused.get(topic) {
                tracing::warn!(topic, ?code, "a topic cannot be read; waited for");
            }
        }
    }

    /// Listens at the admin port.
    pub(crate) fn start_admin(&mut self, group: &str) -> Result<()> {
        let Some(admin) = self.admin.take() else { return Ok(()) };
        let port = Port::bind(admin)?;
        let address = port.address;
        tracing::info!(%address, "admin port");
        let subject = Subject {
            group: group.to_owned(),
            bootstrap: self.bootstrap.clone(),
            cluster: self.options.cluster.clone(),
            rebalance_timeout: self.options.membership.rebalance_timeout,
            is_direct: matches!(self.routes.reads(&self.tended), Ok(Reads::Partitions(_))),
            topics: self.routes.named().map(|(topic, _)| Arc::clone(topic)).collect(),
            routes: self.control().routes,
            inquiry: self.inquiry.clone(),
            asyncapi: self.asyncapi(),
        };
        self.background.push(port.background(subject));
        self.inquiry.board.admin.send_replace(Some(address));
        Ok(())
    }
}

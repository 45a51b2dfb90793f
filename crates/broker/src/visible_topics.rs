//! The catalog as the coordinator of groups reads it.

use moldau_coordinator::{TopicShape, Topics};

use crate::authorizer::{Operation, ResourceType};
use crate::catalog::CatalogView;
use crate::rights::Rights;

impl Topics for CatalogView<'_> {
    fn version(&self) -> u64 {
        CatalogView::version(self)
    }

    fn by_name(&self, name: &str) -> Option<TopicShape> {
        let topic = CatalogView::by_name(self, name)?;
        Some(TopicShape { id: topic.id, partitions: topic.partitions_end() })
    }

    fn matching(&self, accepts: &dyn Fn(&str) -> bool) -> Vec<String> {
        self.names().filter(|name| accepts(name)).map(str::to_owned).collect()
    }
}

/// The topics as the sender of a request may see them.
pub(crate) struct VisibleTopics<'a> {
    pub(crate) topics: &'a CatalogView<'a>,
    pub(crate) rights: &'a Rights,
}

impl Topics for VisibleTopics<'_> {
    fn version(&self) -> u64 {
        Topics::version(self.topics)
    }

    fn by_name(&self, name: &str) -> Option<TopicShape> {
        Topics::by_name(self.topics, name)
    }

    fn matching(&self, accepts: &dyn Fn(&str) -> bool) -> Vec<String> {
        let is_shown =
            |name: &&str| self.rights.show(ResourceType::Topic, Operation::Describe, name);
        let names = self.topics.names().filter(|name| accepts(name)).filter(is_shown);
        names.map(str::to_owned).collect()
    }
}

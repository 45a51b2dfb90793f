//! Which member answers interactive queries for which partitions.

use super::StreamsGroup;
use crate::streams_heartbeat::EndpointPartitions;
use crate::streams_record::{StreamsMember, TaskIds};

impl StreamsGroup {
    /// One for each member that has an endpoint.
    pub(super) fn endpoints(&self) -> Vec<EndpointPartitions> {
        self.members.values().filter_map(|member| self.endpoint(member)).collect()
    }

    fn endpoint(&self, member: &StreamsMember) -> Option<EndpointPartitions> {
        let endpoint = member.endpoint.clone()?;
        let tasks = member.assigned.ids();
        Some(EndpointPartitions {
            endpoint,
            active: self.inputs(&tasks.active),
            standby: self.inputs(&tasks.standby),
        })
    }

    /// The partitions that these tasks read, of topics that exist.
    fn inputs(&self, tasks: &TaskIds) -> Vec<(String, Vec<i32>)> {
        let (Some(topology), Some(configured)) = (&self.topology, &self.configured) else {
            return Vec::new();
        };
        let mut inputs = Vec::new();
        for (id, partitions) in tasks {
            let Some(part) = topology.subtopologies.get(id) else { continue };
            for topic in part.inputs() {
                let size = configured.size_of(topic);
                let read = partitions.iter().copied().filter(|it| *it < size);
                let read: Vec<i32> = read.collect();
                if !read.is_empty() {
                    inputs.push((topic.to_owned(), read));
                }
            }
        }
        inputs
    }
}

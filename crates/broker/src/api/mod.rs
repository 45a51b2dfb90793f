//! One handler per API. What an API is called, which versions of it are served and which handler
//! answers stands in `dispatch` alone.

pub(crate) mod acls;
pub(crate) mod alter_configs;
pub(crate) mod api_versions;
pub(crate) mod client_quotas;
pub(crate) mod consumer_groups;
pub(crate) mod create_partitions;
pub(crate) mod create_topics;
pub(crate) mod delete_records;
pub(crate) mod delete_topics;
pub(crate) mod describe_cluster;
pub(crate) mod describe_configs;
pub(crate) mod describe_log_dirs;
pub(crate) mod describe_topic_partitions;
pub(crate) mod describe_transactions;
pub(crate) mod fetch;
pub(crate) mod find_coordinator;
pub(crate) mod groups;
pub(crate) mod incremental_alter_configs;
pub(crate) mod init_producer_id;
pub(crate) mod list_offsets;
pub(crate) mod membership;
pub(crate) mod metadata;
pub(crate) mod offset_for_leader_epoch;
pub(crate) mod offsets;
pub(crate) mod produce;
pub(crate) mod sasl;
pub(crate) mod scram_credentials;
pub(crate) mod share_acknowledge;
pub(crate) mod share_fetch;
pub(crate) mod share_group_offsets;
pub(crate) mod share_groups;
pub(crate) mod transactions;
pub(crate) mod txn_offset_commit;
pub(crate) mod write_txn_markers;

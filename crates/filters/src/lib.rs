//! Policies that stand in front of any Kafka cluster, each a filter of the proxy.
//!
//! | module | what it holds |
//! |---|---|
//! | `authorization` | [`Authorization`]: who may do what, by rules |
//! | `multi_tenant` | [`MultiTenant`]: tenants that see only their own |
//! | `record_encryption` | [`RecordEncryption`]: seals and opens values |
//! | `header` | [`Header`]: adds and removes headers of records |
//! | `mask` | [`Mask`]: hides fields of JSON values from consumers |
//! | `record_validation` | [`RecordValidation`]: refuses records that break a rule |
//! | `quota` | [`Quota`]: limits bytes and requests |
//! | `audit` | [`Audit`]: logs who did what, with which result |
//! | `chaos` | [`Chaos`]: breaks a cluster on purpose |
//! | `partial` | requests that are refused in part, and their answers |
//! | `names`, `fields` | names and other fields in messages of any API |
//! | `batches` | records on their way through a filter: read, rewritten, refused |
//! | `json` | JSON, scanned in place |
//! | `fetch_session` | fetch sessions, which must begin under the rules in force |
//! | `topics`, `session` | topics by pattern; what filters of records keep of a session |
//! | `error`, `counter` | [`Error`]: settings that make no sense; what filters count |
//!
//! Invariants:
//!
//! - Settings are plain structs, checked once when a filter is made.
//! - A filter fails closed: what it cannot read does not pass by its rules.
//! - Only what a rule is about changes; all other bytes of a message stay as they came.
//! - What is kept for clients is bounded by a named constant, whatever they send.

mod audit;
mod authorization;
mod batches;
mod chaos;
mod counter;
mod error;
mod fetch_session;
mod fields;
mod header;
mod json;
#[cfg(test)]
mod made;
mod mask;
mod multi_tenant;
mod names;
mod partial;
mod quota;
mod record_encryption;
mod record_validation;
mod session;
mod topics;

pub use audit::{AUDITED_APIS, Audit, AuditSettings, WhenFull};
pub use authorization::{Authorization, Operation, Pattern, ResourceType, Rule, Rules};
pub use chaos::{Chaos, ChaosFault, ChaosRule, ChaosSettings, LATENCY_MAX};
pub use error::Error;
pub use header::{Header, HeaderRule, HeaderSettings, HeaderValue, HeaderWay};
pub use mask::{Mask, MaskRule, MaskSettings, Masking, NotJson};
pub use multi_tenant::{MultiTenant, MultiTenantSettings};
pub use quota::{Quota, QuotaEntity, QuotaLimit, QuotaSettings, THROTTLE_MAX};
pub use record_encryption::{
    OnDamage, Recompression, RecordEncryption, RecordEncryptionSettings, UnresolvedKey,
};
pub use record_validation::{
    Content, FieldRule, RecordValidation, RecordValidationSettings, ValidationRule,
};

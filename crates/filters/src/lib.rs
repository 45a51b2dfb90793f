//! Policies that stand in front of any Kafka cluster, each a filter of the proxy.
//!
//! | module | what it holds |
//! |---|---|
//! | `multi_tenant` | [`MultiTenant`]: tenants that see only their own |
//! | `partial` | requests of which a part is refused, and answers that tell of it |
//! | `names` | names in the messages that filters hold |
//! | `error` | [`Error`]: settings that make no sense |

mod error;
mod multi_tenant;
mod names;
mod partial;

pub use error::Error;
pub use multi_tenant::{MultiTenant, MultiTenantSettings};

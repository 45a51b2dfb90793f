//! The settings of the filter `multi_tenant`.

use moldau_filters::{MultiTenant, MultiTenantSettings};
use serde::Deserialize;

use crate::config::problem::{At, Problem};

/// The keys of the filter.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keys {
    /// What the names of a tenant begin with on the cluster. Default `$(virtualClusterName)-`.
    prefix: Option<At<String>>,
}

impl Keys {
    /// Makes the filter.
    ///
    /// # Errors
    /// Names the key that is at fault.
    pub(crate) fn filter(&self) -> Result<MultiTenant, Problem> {
        let Some(prefix) = &self.prefix else {
            let made = MultiTenant::new(&MultiTenantSettings::default());
            return Ok(made.expect("the default prefix is one"));
        };
        let settings = MultiTenantSettings { prefix: prefix.value.clone() };
        MultiTenant::new(&settings).map_err(|error| Problem::at(prefix, error))
    }
}

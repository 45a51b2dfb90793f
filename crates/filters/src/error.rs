/// Why a filter cannot be made.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// What the operator wrote makes no sense.
    #[error("{filter}: {reason}")]
    Setting {
        /// The filter, by its name in logs and metrics.
        filter: &'static str,
        /// What is wrong, for the operator.
        reason: String,
    },
}

impl Error {
    pub(crate) fn setting(filter: &'static str, reason: impl Into<String>) -> Self {
        Self::Setting { filter, reason: reason.into() }
    }
}

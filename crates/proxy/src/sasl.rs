//! SASL of clients: seen as it passes to the cluster, or answered by the proxy.
//!
//! | module | what it does |
//! |---|---|
//! | `claim` | reads who a client says it is |
//! | `observe` | believes it once the cluster has accepted it |
//! | `terminate` | authenticates clients before anything of theirs reaches the cluster |
//! | `renew` | authenticates the proxy anew in the middle of a session (KIP-368) |

mod claim;
mod observe;
mod renew;
mod terminate;

use std::rc::Rc;
use std::sync::Arc;

use moldau_protocol::ApiKey;

use self::observe::Observer;
use self::terminate::Terminator;
use crate::context::SessionContext;
use crate::filter::{Direction, Filter, SessionFilter};

pub(crate) use self::renew::{Renewal, Renewing};
pub(crate) use self::terminate::authenticate;

/// Stands behind the filters of the operator, so that these see SASL as it passes and know its
/// outcome.
#[derive(Debug, Default)]
pub(crate) struct SaslFilter;

impl Filter for SaslFilter {
    fn name(&self) -> &'static str {
        "sasl"
    }

    fn claims(&self, api: ApiKey, _: Direction) -> bool {
        matches!(api, ApiKey::SaslHandshake | ApiKey::SaslAuthenticate)
    }

    fn session(self: Arc<Self>, session: &SessionContext) -> Rc<dyn SessionFilter> {
        if session.sasl().is_some() {
            Rc::new(Terminator::new(session.clone()))
        } else {
            Rc::new(Observer::new(session.clone()))
        }
    }
}

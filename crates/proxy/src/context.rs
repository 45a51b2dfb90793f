use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use moldau_net::Principal;

/// What is known of a session beside its messages. Clones share it, so that a filter that keeps
/// one sees the principal as it is at the moment of the call.
#[derive(Clone, Debug)]
pub struct SessionContext {
    inner: Rc<Inner>,
}

#[derive(Debug)]
struct Inner {
    virtual_cluster: Arc<str>,
    client_address: SocketAddr,
    principal: RefCell<Principal>,
}

impl SessionContext {
    /// For a client that came from `client_address`.
    #[must_use]
    pub fn new(
        virtual_cluster: impl Into<Arc<str>>,
        client_address: SocketAddr,
        principal: Principal,
    ) -> Self {
        let (virtual_cluster, principal) = (virtual_cluster.into(), RefCell::new(principal));
        Self { inner: Rc::new(Inner { virtual_cluster, client_address, principal }) }
    }

    /// The name of the virtual cluster.
    #[must_use]
    pub fn virtual_cluster(&self) -> &str {
        &self.inner.virtual_cluster
    }

    /// Where the client is; behind a load balancer that speaks the PROXY protocol, what that said.
    #[must_use]
    pub fn client_address(&self) -> SocketAddr {
        self.inner.client_address
    }

    /// Who the client is, as known at this moment: by its certificate, or since it authenticated by
    /// SASL, with the proxy or with the cluster. `User:ANONYMOUS` until then.
    #[must_use]
    pub fn principal(&self) -> Principal {
        self.inner.principal.borrow().clone()
    }
}

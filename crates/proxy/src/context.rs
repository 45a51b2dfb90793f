//! Session data for filters beside its messages.

use std::cell::{Cell, OnceCell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use moldau_net::sasl::{Admit, SaslSession};
use moldau_net::{FRAME_BYTES_MAX_DEFAULT, MemoryAccount, MemoryBudget, Principal};
use moldau_protocol::ApiKey;

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
    frame_bytes_max: usize,
    memory: MemoryAccount,
    principal: RefCell<Principal>,
    principal_changes: Cell<u32>,
    /// Of a client that authenticated with the proxy itself.
    sasl: OnceCell<RefCell<SaslSession>>,
}

impl SessionContext {
    /// For a client that came from `client_address`, with requests up to Kafka's default size and
    /// memory without a limit.
    #[must_use]
    pub fn new(
        virtual_cluster: impl Into<Arc<str>>,
        client_address: SocketAddr,
        principal: Principal,
    ) -> Self {
        let memory = MemoryBudget::unlimited().account();
        let frame_bytes_max = FRAME_BYTES_MAX_DEFAULT;
        Self::with_limits(virtual_cluster, client_address, principal, frame_bytes_max, memory)
    }

    /// The same with requests of up to `frame_bytes_max` bytes, and memory from an account.
    #[must_use]
    pub fn with_limits(
        virtual_cluster: impl Into<Arc<str>>,
        client_address: SocketAddr,
        principal: Principal,
        frame_bytes_max: usize,
        memory: MemoryAccount,
    ) -> Self {
        let inner = Inner {
            virtual_cluster: virtual_cluster.into(),
            client_address,
            frame_bytes_max,
            memory,
            principal: RefCell::new(principal),
            principal_changes: Cell::new(0),
            sasl: OnceCell::new(),
        };
        Self { inner: Rc::new(inner) }
    }

    /// The name of the virtual cluster.
    #[must_use]
    pub fn virtual_cluster(&self) -> &str {
        &self.inner.virtual_cluster
    }

    /// The name of the virtual cluster, to be kept.
    pub(crate) fn shared_virtual_cluster(&self) -> Arc<str> {
        Arc::clone(&self.inner.virtual_cluster)
    }

    /// Where the client is; behind a load balancer that speaks the PROXY protocol, what that said.
    #[must_use]
    pub fn client_address(&self) -> SocketAddr {
        self.inner.client_address
    }

    /// Most bytes of a request without its length: the limit for what the client sends, and for
    /// what filters make of it.
    #[must_use]
    pub fn frame_bytes_max(&self) -> usize {
        self.inner.frame_bytes_max
    }

    /// Account that memory for the session's messages is charged to.
    #[must_use]
    pub fn memory(&self) -> &MemoryAccount {
        &self.inner.memory
    }

    /// Who the client is, as known at this moment: by its certificate, or since it authenticated by
    /// SASL, with the proxy or with the cluster. `User:ANONYMOUS` until then.
    #[must_use]
    pub fn principal(&self) -> Principal {
        self.inner.principal.borrow().clone()
    }

    /// The client has authenticated.
    pub(crate) fn set_principal(&self, principal: Principal) {
        *self.inner.principal.borrow_mut() = principal;
        self.inner.principal_changes.set(self.principal_changes().wrapping_add(1));
    }

    /// How often the principal was set.
    pub(crate) fn principal_changes(&self) -> u32 {
        self.inner.principal_changes.get()
    }
    /// The client has authenticated with the proxy.
    pub(crate) fn set_sasl(&self, session: SaslSession) {
        // It is set once, before the session begins.
        drop(self.inner.sasl.set(RefCell::new(session)));
    }

    /// The SASL session of a client that authenticated with the proxy.
    pub(crate) fn sasl(&self) -> Option<&RefCell<SaslSession>> {
        self.inner.sasl.get()
    }

    /// Whether a request may be taken: not if the client's authentication has run out (KIP-368).
    #[inline]
    pub(crate) fn admits(&self, api: Option<ApiKey>) -> bool {
        let Some(sasl) = self.sasl() else { return true };
        let admit = |api| matches!(sasl.borrow().admits(api, Instant::now()), Admit::Yes);
        api.is_some_and(admit)
    }
}

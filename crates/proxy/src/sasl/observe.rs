//! SASL that passes to the cluster: what a client claims is believed once the cluster accepted it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use moldau_net::Principal;
use moldau_net::sasl::Mechanism;
use moldau_protocol::ApiKey;
use moldau_protocol::messages::{
    SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest, SaslHandshakeResponse,
};

use super::claim::{claimed, is_final};
use crate::context::SessionContext;
use crate::filter::{FilterFuture, RequestOutcome, SessionFilter};
use crate::frame::{RequestFrame, ResponseFrame};
use crate::upstream::{FilterError, Upstream};

/// Watches the SASL of one session.
pub(super) struct Observer {
    context: SessionContext,
    exchange: RefCell<Exchange>,
}

#[derive(Default)]
struct Exchange {
    /// Mechanism of the last handshake; `None` if it is not known here.
    asked: Option<Mechanism>,
    /// The mechanism on which the cluster agreed.
    agreed: Option<Mechanism>,
    /// Principal of the exchange that is under way.
    claim: Option<Principal>,
    /// What was asked for, or claimed, by each request in flight, in their order.
    in_flight: VecDeque<Asked>,
}

enum Asked {
    Handshake(Option<Mechanism>),
    Authenticate(Option<(Mechanism, Principal)>),
}

impl Observer {
    pub(super) fn new(context: SessionContext) -> Self {
        Self { context, exchange: RefCell::default() }
    }

    fn see_request(&self, request: &RequestFrame) -> Result<(), FilterError> {
        let mut exchange = self.exchange.borrow_mut();
        let exchange = &mut *exchange;
        let asked = if request.api_key() == ApiKey::SaslHandshake {
            let handshake: SaslHandshakeRequest = request.decode()?;
            exchange.asked = handshake.mechanism.parse().ok();
            exchange.claim = None;
            Asked::Handshake(exchange.asked)
        } else {
            let message: SaslAuthenticateRequest = request.decode()?;
            let claim = exchange.asked.and_then(|it| claimed(it, &message.auth_bytes));
            // Later messages are about the principal that the first named, even if they name
            // another.
            exchange.claim = exchange.claim.take().or(claim);
            Asked::Authenticate(exchange.asked.zip(exchange.claim.clone()))
        };
        exchange.in_flight.push_back(asked);
        Ok(())
    }

    fn see_response(&self, response: &ResponseFrame) -> Result<(), FilterError> {
        let mut exchange = self.exchange.borrow_mut();
        match exchange.in_flight.pop_front() {
            Some(Asked::Handshake(asked)) => {
                let accepted = response.decode::<SaslHandshakeResponse>()?.error_code == 0;
                exchange.agreed = asked.filter(|_| accepted);
            }
            Some(Asked::Authenticate(claim)) => {
                let answer: SaslAuthenticateResponse = response.decode()?;
                if let Some((mechanism, principal)) = claim
                    && answer.error_code == 0
                    && exchange.agreed == Some(mechanism)
                    && is_final(mechanism, &answer.auth_bytes)
                {
                    self.context.set_principal(principal);
                }
            }
            None => {}
        }
        Ok(())
    }
}

impl SessionFilter for Observer {
    fn request(self: Rc<Self>, request: RequestFrame, _: Upstream) -> FilterFuture<RequestOutcome> {
        let seen = self.see_request(&request);
        Box::pin(std::future::ready(seen.map(|()| RequestOutcome::Forward(request))))
    }

    fn response(self: Rc<Self>, response: ResponseFrame) -> FilterFuture<ResponseFrame> {
        let seen = self.see_response(&response);
        Box::pin(std::future::ready(seen.map(|()| response)))
    }
}

#[cfg(test)]
mod tests;

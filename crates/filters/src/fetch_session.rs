//! Sessions of fetch requests (KIP-227, KIP-932), for filters that judge what requests name.
//!
//! A broker remembers what a session named before, so that a request that goes on with it names
//! only what changed. All clients of a proxy may look like one client to the cluster. So a client
//! that guesses the id and the epoch of another's session would get answers about its topics. A
//! session that began under other rules would outlive them. So only sessions that began here may
//! continue. A refused client begins again, and names all that it wants.

use std::cell::{Cell, RefCell};

use moldau_protocol::messages::{FetchResponse, ShareFetchResponse};
use moldau_protocol::{ApiKey, DecodeError, ErrorCode, Reader};
use moldau_proxy::{FilterError, RequestFrame, ResponseFrame};

/// What began on one connection since its filter is in force.
#[derive(Debug, Default)]
pub(crate) struct FetchSession {
    fetch: Cell<Fetch>,
    /// The group and the member of the share session.
    share: RefCell<Option<(String, String)>>,
}

/// The one session that a consumer has with a broker.
#[derive(Clone, Copy, Debug, Default)]
enum Fetch {
    #[default]
    None,
    /// It was asked for: the next request tells what id it got.
    Begun,
    Known(i32),
}

impl FetchSession {
    /// The answer to a request that goes on with a session which did not begin here.
    pub(crate) fn refuse(
        &self,
        request: &RequestFrame,
    ) -> Result<Option<ResponseFrame>, FilterError> {
        match request.api_key() {
            ApiKey::Fetch if request.api_version() >= SESSIONS_SINCE => {
                let (id, epoch) = fetch_session(request)?;
                if self.admits(id, epoch) {
                    return Ok(None);
                }
                let error_code = ErrorCode::FetchSessionIdNotFound.into();
                let answer = FetchResponse { error_code, ..FetchResponse::default() };
                Ok(Some(request.respond(&answer)?))
            }
            ApiKey::ShareFetch => {
                let (member, epoch) = share_session(request)?;
                if self.admits_share(member, epoch) {
                    return Ok(None);
                }
                let error_code = ErrorCode::ShareSessionNotFound.into();
                let answer = ShareFetchResponse { error_code, ..ShareFetchResponse::default() };
                Ok(Some(request.respond(&answer)?))
            }
            _ => Ok(None),
        }
    }

    fn admits(&self, id: i32, epoch: i32) -> bool {
        match (epoch, self.fetch.get()) {
            (BEGINS, _) => self.fetch.set(Fetch::Begun),
            (..BEGINS, _) => self.fetch.set(Fetch::None),
            // Another's session at its first epoch can be met by nothing but chance.
            (FIRST, Fetch::Begun) => self.fetch.set(Fetch::Known(id)),
            (_, Fetch::Known(known)) => return known == id,
            _ => return false,
        }
        true
    }

    fn admits_share(&self, member: (&str, &str), epoch: i32) -> bool {
        let mut known = self.share.borrow_mut();
        match epoch {
            BEGINS => *known = Some((member.0.to_owned(), member.1.to_owned())),
            ..BEGINS => *known = None,
            _ => return known.as_ref().is_some_and(|(group, id)| (&**group, &**id) == member),
        }
        true
    }
}

/// The id and the epoch of a fetch request's session.
fn fetch_session(request: &RequestFrame) -> Result<(i32, i32), DecodeError> {
    let mut reader = Reader::new(request.body());
    if request.api_version() < REPLICA_TAGGED_SINCE {
        reader.i32()?;
    }
    reader.take(LIMITS_BYTES, "limits and isolation")?;
    Ok((reader.i32()?, reader.i32()?))
}

/// The group, the member and the epoch of a share fetch request's session.
fn share_session(request: &RequestFrame) -> Result<((&str, &str), i32), DecodeError> {
    let mut reader = Reader::new(request.body());
    let group = reader.str(true, true)?.unwrap_or_default();
    let member = reader.str(true, true)?.unwrap_or_default();
    Ok(((group, member), reader.i32()?))
}

/// The first version of Fetch with sessions (KIP-227).
const SESSIONS_SINCE: i16 = 7;

/// The first version of Fetch that does not begin with the id of a replica (KIP-903).
const REPLICA_TAGGED_SINCE: i16 = 15;

/// How long to wait, fewest and most bytes, and the isolation level.
const LIMITS_BYTES: usize = 13;

/// The epoch that asks for a session; those below end one or want none.
const BEGINS: i32 = 0;

/// The epoch of the request behind that.
const FIRST: i32 = 1;

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use moldau_protocol::messages::{FetchRequest, ShareFetchRequest};
    use moldau_protocol::{Message, Request, frame};

    use super::*;

    fn request<Q: Request>(version: i16, message: &Q) -> RequestFrame {
        let mut bytes = BytesMut::new();
        frame::encode_request(&mut bytes, version, 5, None, message).unwrap();
        RequestFrame::parse(bytes.into(), true).unwrap()
    }

    fn fetch(sessions: &FetchSession, version: i16, session_id: i32, session_epoch: i32) -> bool {
        let message = FetchRequest { session_id, session_epoch, ..FetchRequest::default() };
        match sessions.refuse(&request(version, &message)).unwrap() {
            None => true,
            Some(answer) => {
                let answer: FetchResponse = answer.decode().unwrap();
                assert_eq!(answer.error_code, i16::from(ErrorCode::FetchSessionIdNotFound));
                false
            }
        }
    }

    /// With the id of another client's session its topics were fetched, whatever the rules.
    #[test]
    fn a_fetch_session_goes_on_only_where_it_began() {
        for version in SESSIONS_SINCE..=FetchRequest::VERSIONS.max {
            let sessions = FetchSession::default();
            assert!(!fetch(&sessions, version, 7, 1), "another's");
            assert!(fetch(&sessions, version, 0, 0));
            assert!(!fetch(&sessions, version, 7, 31), "another's, further on");
            assert!(fetch(&sessions, version, 5, 1) && fetch(&sessions, version, 5, 2));
            assert!(!fetch(&sessions, version, 7, 3), "another's beside the own");
            assert!(fetch(&sessions, version, 5, 3));
            assert!(fetch(&sessions, version, 5, -1) && !fetch(&sessions, version, 5, 1));
        }
        let sessions = FetchSession::default();
        assert!((4..SESSIONS_SINCE).all(|version| fetch(&sessions, version, 0, -1)));
    }

    #[test]
    fn a_share_session_goes_on_only_where_it_began() {
        let sessions = FetchSession::default();
        let admits = |member: &str, share_session_epoch| {
            let message = ShareFetchRequest {
                group_id: Some("g".to_owned()),
                member_id: Some(member.to_owned()),
                share_session_epoch,
                ..ShareFetchRequest::default()
            };
            sessions.refuse(&request(1, &message)).unwrap().is_none()
        };
        assert!(!admits("m", 1));
        assert!(admits("m", 0) && admits("m", 1) && !admits("n", 1));
        assert!(admits("m", -1) && !admits("m", 2));
    }
}

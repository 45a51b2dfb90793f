//! Names in the messages that filters hold.

use moldau_protocol::names::{self, Visitor};
use moldau_protocol::{Entity, Field, Kind};
use moldau_proxy::{FilterError, RequestFrame, ResponseFrame};

/// Shows a visitor the names of a request.
pub(crate) fn see(request: &RequestFrame, visitor: &mut impl Visitor) -> Result<(), FilterError> {
    let layout = names::request_layout(request.api_key());
    names::visit(&layout, request.api_version(), request.body(), visitor)?;
    Ok(())
}

/// A request as a visitor wants it.
pub(crate) fn rewrite_request(
    request: RequestFrame,
    visitor: &mut impl Visitor,
) -> Result<RequestFrame, FilterError> {
    let layout = names::request_layout(request.api_key());
    let edits = names::visit(&layout, request.api_version(), request.body(), visitor)?;
    if edits.is_empty() {
        return Ok(request);
    }
    let mut bytes = request.header_bytes();
    edits.apply(request.body(), &mut bytes);
    Ok(request.with_bytes(bytes)?)
}

/// An answer as a visitor wants it.
pub(crate) fn rewrite_response(
    response: ResponseFrame,
    visitor: &mut impl Visitor,
) -> Result<ResponseFrame, FilterError> {
    let layout = names::response_layout(response.api_key());
    let edits = names::visit(&layout, response.api_version(), response.body(), visitor)?;
    if edits.is_empty() {
        return Ok(response);
    }
    let mut bytes = response.header_bytes();
    edits.apply(response.body(), &mut bytes);
    Ok(response.with_bytes(bytes)?)
}

/// Whether fields name anything.
pub(crate) fn names_any(fields: &[Field]) -> bool {
    has_any(fields, None, |entity| entity != Entity::Explanation)
}

/// Whether a version of fields has texts that name or explain anything.
pub(crate) fn has_texts(fields: &[Field], version: i16) -> bool {
    has_any(fields, Some(version), |entity| entity != Entity::TopicId)
}

fn has_any(fields: &[Field], version: Option<i16>, is_wanted: fn(Entity) -> bool) -> bool {
    let mut fields =
        fields.iter().filter(|field| version.is_none_or(|it| field.versions.contains(it)));
    fields.any(|field| {
        field.entity.is_some_and(is_wanted) || {
            let mut kind = field.kind;
            while let Kind::Array(element) = kind {
                kind = *element;
            }
            matches!(kind, Kind::Struct(fields) if has_any(fields, version, is_wanted))
        }
    })
}

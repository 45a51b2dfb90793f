//! Background tasks that take care of the partitions of a topic, each in one member of the group.

use std::sync::Arc;

use tokio::task::JoinSet;

use crate::background::{Background, Stage};
use crate::claims::Hold;
use crate::context::Services;
use crate::failure::BoxError;

/// A background task that calls `serve` for each partition of `topic` that the member has. `serve`
/// returns soon after its partition was recalled; an error of it ends the app.
pub(crate) fn caretaker<F, Fut>(name: &'static str, topic: Arc<str>, serve: F) -> Background
where
    F: Fn(Hold, Arc<Services>) -> Fut + Send + 'static,
    Fut: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    Background::new(name, async move |services: Arc<Services>, mut lifecycle| {
        let mut serving = JoinSet::new();
        loop {
            tokio::select! {
                hold = services.claims.take(&topic) => {
                    serving.spawn(serve(hold, Arc::clone(&services)));
                }
                Some(ended) = serving.join_next() => ended??,
                () = lifecycle.reached(Stage::Ended) => break,
            }
        }
        while let Some(ended) = serving.join_next().await {
            ended??;
        }
        Ok(())
    })
}

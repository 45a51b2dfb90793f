//! Which topics an app reads, and which route handles the records of each.

use std::ptr;
use std::sync::Arc;

use moldau_client::TopicPartition;

use crate::route::AnyRoute;
use crate::source::Source;
use crate::{Error, Result};

/// The routes of an app in the order in which they were given.
#[derive(Default)]
pub(crate) struct Routes {
    routes: Vec<(Source, AnyRoute)>,
}

/// How an app gets its partitions.
#[derive(Debug)]
pub(crate) enum Reads {
    /// The group assigns them: those of these topics, and of those that match.
    Subscription { topics: Vec<String>, pattern: Option<String> },
    /// These.
    Partitions(Vec<TopicPartition>),
}

impl Routes {
    pub(crate) fn add(&mut self, topics: Source, route: AnyRoute) {
        self.routes.push((topics, route));
    }

    pub(crate) fn count(&self) -> usize {
        self.routes.len()
    }

    /// The route of a topic: the one that names it, otherwise the first that matches.
    pub(crate) fn find(&self, topic: &str) -> Option<&AnyRoute> {
        let is_named = |topics: &Source| topics.name().is_some_and(|name| **name == *topic);
        let mut routes = self.routes.iter();
        let named = routes.find(|(topics, _)| is_named(topics));
        let found = named.or_else(|| self.routes.iter().find(|(topics, _)| topics.cover(topic)));
        found.map(|(_, route)| route)
    }

    /// The routes with what figures call them.
    pub(crate) fn labelled(&self) -> impl Iterator<Item = (Arc<str>, &AnyRoute)> {
        self.routes.iter().map(|(topics, route)| (topics.label(), route))
    }

    /// The routes with what they are for.
    pub(crate) fn sourced(&self) -> impl Iterator<Item = (&Source, &AnyRoute)> {
        self.routes.iter().map(|(source, route)| (source, route))
    }

    /// The routes that name a topic.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&Arc<str>, &AnyRoute)> {
        self.routes.iter().filter_map(|(topics, route)| Some((topics.name()?, route)))
    }

    /// # Errors
    /// [`Error::OwnDeadLetters`].
    pub(crate) fn check_dead_letters(&self) -> Result<()> {
        for (_, route) in &self.routes {
            let is_own = |topic: &&String| self.find(topic).is_some_and(|it| ptr::eq(it, route));
            if let Some(topic) = route.dead_letter_topics.iter().find(is_own) {
                return Err(Error::OwnDeadLetters { topic: topic.clone() });
            }
        }
        Ok(())
    }

    /// What an app reads that has these routes, and tasks that take care of the topics `tended`.
    ///
    /// # Errors
    /// [`Error::NoRoute`], [`Error::RouteTwice`], [`Error::AssignedAndSubscribed`].
    pub(crate) fn reads(&self, tended: &[Arc<str>]) -> Result<Reads> {
        let routed = self.routes.iter().filter_map(|(it, _)| it.name());
        let mut named: Vec<&Arc<str>> = routed.chain(tended).collect();
        named.sort_unstable();
        if let Some([topic, _]) = named.array_windows().find(|[one, other]| one == other) {
            return Err(Error::RouteTwice { topic: Arc::clone(topic) });
        }
        let mut topics: Vec<String> = tended.iter().map(ToString::to_string).collect();
        let (mut patterns, mut partitions) = (Vec::new(), Vec::new());
        for (of, _) in &self.routes {
            match of {
                Source::Named(name) => topics.push(name.to_string()),
                Source::Matching(pattern) => patterns.push(&*pattern.text),
                Source::Partitions(assigned) => partitions.extend(assigned.iter().cloned()),
            }
        }
        let is_subscribed = !topics.is_empty() || !patterns.is_empty();
        match (is_subscribed, partitions.is_empty()) {
            (false, true) => Err(Error::NoRoute),
            (true, false) => Err(Error::AssignedAndSubscribed),
            (false, false) => {
                partitions.sort_unstable();
                partitions.dedup();
                Ok(Reads::Partitions(partitions))
            }
            (true, true) => {
                let pattern = match patterns.as_slice() {
                    [] => None,
                    [pattern] => Some((*pattern).to_owned()),
                    several => Some(format!("(?:{})", several.join(")|(?:"))),
                };
                Ok(Reads::Subscription { topics, pattern })
            }
        }
    }
}

//! Folded stacks: read, shared out over categories, compared, and pruned to a tree that is drawn.

use std::collections::BTreeMap;

use super::categories::{Category, SHOWN};
use crate::statistics::float;

/// The stacks of one profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stacks<'a> {
    stacks: Vec<Stack<'a>>,
    samples: u64,
}

/// Frames from the outermost in, the thread first, and how often they were seen.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stack<'a> {
    frames: Vec<&'a str>,
    samples: u64,
}

/// A frame of the tree, before what it called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node<'a> {
    /// 0 for threads.
    pub depth: usize,
    pub name: &'a str,
    /// Samples of it and of what it called.
    pub samples: u64,
}

/// How the share of a function itself, without what it calls, differs between two profiles.
#[derive(Clone, Debug, PartialEq)]
pub struct Change<'a> {
    /// Name of the function.
    pub function: &'a str,
    /// Share of all samples in the first profile, 0 to 1.
    pub before: f64,
    /// The same in the second.
    pub after: f64,
}

impl<'a> Stacks<'a> {
    /// Reads folded stacks. Equal stacks may come several times.
    ///
    /// # Errors
    /// The number of the first line that is none.
    pub fn parse(text: &'a str) -> Result<Self, String> {
        let mut stacks = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let stack = line.rsplit_once(' ').and_then(|(frames, count)| {
                let frames = frames.split(';').map(plain_name).collect();
                Some(Stack { frames, samples: count.parse().ok()? })
            });
            let stack = stack.ok_or_else(|| format!("line {} is no folded stack", index + 1))?;
            stacks.push(stack);
        }
        let samples = stacks.iter().fold(0_u64, |sum, stack| sum.saturating_add(stack.samples));
        Ok(Self { stacks, samples })
    }

    /// All samples.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The share of each category, 0 to 1, in the order of [`SHOWN`]; their sum is 1.
    pub fn shares(&self) -> Vec<(Category, f64)> {
        let mut counts = [0_u64; SHOWN.len()];
        for stack in &self.stacks {
            let category = Category::of(&stack.frames);
            let place = SHOWN.iter().zip(&mut counts).find(|(shown, _)| **shown == category);
            if let Some((_, count)) = place {
                *count += stack.samples;
            }
        }
        SHOWN.into_iter().zip(counts).map(|(shown, count)| (shown, self.share(count))).collect()
    }

    /// The functions whose own shares differ most from those of `before`, at most `count` of them,
    /// the greatest difference first.
    pub fn changes(&self, before: &Stacks<'a>, count: usize) -> Vec<Change<'a>> {
        let mut changes: BTreeMap<&str, Change<'_>> = BTreeMap::new();
        for (stacks, is_after) in [(before, false), (self, true)] {
            for stack in &stacks.stacks {
                let Some(function) = stack.frames.last() else { continue };
                let change =
                    changes.entry(function).or_insert(Change { function, before: 0.0, after: 0.0 });
                let share = if is_after { &mut change.after } else { &mut change.before };
                *share += stacks.share(stack.samples);
            }
        }
        let mut changes: Vec<Change<'_>> = changes.into_values().collect();
        let size = |change: &Change<'_>| (change.after - change.before).abs();
        changes.retain(|change| size(change) > 0.0);
        changes.sort_by(|one, other| size(other).total_cmp(&size(one)));
        changes.truncate(count);
        changes
    }

    /// The tree of all stacks, each frame before what it called, in the order of their names.
    /// Frames with less than `share_min` of all samples are left out; what they took remains in
    /// their callers.
    pub fn tree(&self, share_min: f64) -> Vec<Node<'a>> {
        let mut sorted: Vec<&Stack<'_>> = self.stacks.iter().collect();
        sorted.sort_by(|one, other| one.frames.cmp(&other.frames));
        let mut nodes: Vec<Node<'_>> = Vec::new();
        // Where the frames of the stack before stand among the nodes.
        let mut path: Vec<usize> = Vec::new();
        for stack in sorted {
            let is_same =
                |at: &usize, frame: &&str| nodes.get(*at).is_some_and(|node| node.name == *frame);
            let common = path.iter().zip(&stack.frames).take_while(|(at, it)| is_same(at, it));
            path.truncate(common.count());
            for name in stack.frames.iter().skip(path.len()) {
                path.push(nodes.len());
                nodes.push(Node { depth: path.len() - 1, name, samples: 0 });
            }
            for at in &path {
                if let Some(node) = nodes.get_mut(*at) {
                    node.samples += stack.samples;
                }
            }
        }
        // What a frame called has no more samples than itself, so that it goes with it.
        nodes.retain(|node| self.share(node.samples) >= share_min);
        nodes
    }

    fn share(&self, samples: u64) -> f64 {
        if self.samples == 0 { 0.0 } else { float(samples) / float(self.samples) }
    }
}

/// A name as people read it: without the hash that the compiler adds to equal names, and a thread
/// without its id.
fn plain_name(name: &str) -> &str {
    if let Some(thread) = name.strip_prefix('[')
        && let Some((thread, _)) = thread.rsplit_once(" tid=")
    {
        return thread;
    }
    match name.rsplit_once("::h") {
        Some((plain, hash)) if is_hash(hash) => plain,
        _ => name,
    }
}

fn is_hash(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

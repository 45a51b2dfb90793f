//! Cycles of writes and reads between operations: Adya's G0 and G1c.
//!
//! An operation precedes another if it wrote the record before the other's in a partition, or if
//! the other polled its record. The operations of a strongly connected component precede each
//! other; one short cycle of each is its evidence.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::anomaly::{Anomaly, Edge, Kind, Relation};
use crate::history::Outcome;
use crate::index::Index;
use crate::report::Report;

/// For each operation, what it precedes.
type Graph = Vec<Vec<Edge>>;

pub(crate) fn find(index: &Index<'_>, report: &mut Report) {
    let count = index.operations.len();
    let (wrote, polled) = (wrote(index), polled(index));
    let graph = |parts: &[&[Edge]]| {
        let mut graph: Graph = vec![Vec::new(); count];
        for edge in parts.iter().copied().flatten() {
            if let Some(edges) = graph.get_mut(edge.from) {
                edges.push(*edge);
            }
        }
        graph
    };
    let mut explained = HashSet::new();
    for (kind, graph) in [
        (Kind::WriteCycle, graph(&[&wrote])),
        (Kind::ReadCycle, graph(&[&polled])),
        (Kind::MixedCycle, graph(&[&wrote, &polled])),
    ] {
        for component in components(&graph) {
            // A mixed component that a purer cycle explains is not another anomaly.
            let is_explained = component.iter().any(|operation| explained.contains(operation));
            if kind == Kind::MixedCycle && is_explained {
                continue;
            }
            explained.extend(component.iter().copied());
            report.add(kind, || evidence(kind, &shortest_cycle(&graph, &component)));
        }
    }
}

/// From each record's operation to that of the next one in its partition.
fn wrote(index: &Index<'_>) -> Vec<Edge> {
    let mut edges = HashSet::new();
    for (&partition, log) in &index.logs {
        let mut before = None;
        for (&offset, version) in log {
            let Some(to) = index.committed_writer(version) else { continue };
            if let Some(from) = before.replace(to).filter(|from| *from != to) {
                edges.insert(Edge { from, to, relation: Relation::Wrote, partition, offset });
            }
        }
    }
    sorted(edges)
}

/// From each record's operation to those that polled it.
fn polled(index: &Index<'_>) -> Vec<Edge> {
    let mut edges = HashMap::new();
    for read in index.reads() {
        let Some(write) = index.writes.get(&read.seen.value) else { continue };
        let (from, to) = (write.operation, read.operation);
        if from != to && index.outcomes.get(to) != Some(&Outcome::Aborted) {
            let (partition, offset) = (read.partition, read.seen.offset);
            edges.entry((from, to)).or_insert(Edge {
                from,
                to,
                relation: Relation::Polled,
                partition,
                offset,
            });
        }
    }
    sorted(edges.into_values())
}

fn sorted(edges: impl IntoIterator<Item = Edge>) -> Vec<Edge> {
    let mut edges: Vec<_> = edges.into_iter().collect();
    edges.sort_unstable_by_key(|edge| (edge.from, edge.to, edge.partition, edge.offset));
    edges
}

/// The strongly connected components of two or more operations (Tarjan, without recursion).
fn components(graph: &Graph) -> Vec<Vec<usize>> {
    Search {
        graph,
        order: vec![None; graph.len()],
        low: vec![0; graph.len()],
        on_stack: vec![false; graph.len()],
        stack: Vec::new(),
        found: Vec::new(),
        next: 0,
    }
    .run()
}

/// The state of Tarjan's search.
struct Search<'a> {
    graph: &'a Graph,
    /// When each operation was entered.
    order: Vec<Option<usize>>,
    /// The earliest operation of the stack that each reaches.
    low: Vec<usize>,
    on_stack: Vec<bool>,
    stack: Vec<usize>,
    found: Vec<Vec<usize>>,
    next: usize,
}

impl Search<'_> {
    fn run(mut self) -> Vec<Vec<usize>> {
        for root in 0..self.graph.len() {
            if self.order[root].is_some() {
                continue;
            }
            // Operations on the way, each with the place of its next edge.
            let mut way = vec![(root, 0)];
            self.enter(root);
            while let Some((operation, edge)) = way.last_mut() {
                let operation = *operation;
                let Some(to) = self.graph[operation].get(*edge).map(|edge| edge.to) else {
                    way.pop();
                    self.leave(operation, way.last().map(|(parent, _)| *parent));
                    continue;
                };
                *edge += 1;
                match self.order[to] {
                    None => {
                        self.enter(to);
                        way.push((to, 0));
                    }
                    Some(order) if self.on_stack[to] => {
                        self.low[operation] = self.low[operation].min(order);
                    }
                    Some(_) => {}
                }
            }
        }
        self.found
    }

    fn enter(&mut self, operation: usize) {
        self.order[operation] = Some(self.next);
        self.low[operation] = self.next;
        self.next += 1;
        self.stack.push(operation);
        self.on_stack[operation] = true;
    }

    fn leave(&mut self, operation: usize, parent: Option<usize>) {
        if let Some(parent) = parent {
            self.low[parent] = self.low[parent].min(self.low[operation]);
        }
        if self.order[operation] != Some(self.low[operation]) {
            return;
        }
        let mut component = Vec::new();
        while let Some(member) = self.stack.pop() {
            self.on_stack[member] = false;
            component.push(member);
            if member == operation {
                break;
            }
        }
        if component.len() > 1 {
            component.sort_unstable();
            self.found.push(component);
        }
    }
}

/// The shortest cycle through the first operation of a component.
fn shortest_cycle(graph: &Graph, component: &[usize]) -> Vec<Edge> {
    let inside: HashSet<_> = component.iter().copied().collect();
    let Some(&start) = component.first() else { return Vec::new() };
    let mut reached: HashMap<usize, Edge> = HashMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(operation) = queue.pop_front() {
        for edge in graph[operation].iter().filter(|edge| inside.contains(&edge.to)) {
            if edge.to == start {
                let mut cycle = vec![*edge];
                let mut at = operation;
                while let Some(edge) = reached.get(&at).filter(|_| at != start) {
                    cycle.push(*edge);
                    at = edge.from;
                }
                cycle.reverse();
                return cycle;
            }
            reached.entry(edge.to).or_insert_with(|| {
                queue.push_back(edge.to);
                *edge
            });
        }
    }
    Vec::new()
}

fn evidence(kind: Kind, cycle: &[Edge]) -> Anomaly {
    Anomaly {
        kind,
        partition: None,
        offsets: Vec::new(),
        value: None,
        operations: cycle.iter().map(|edge| edge.from).collect(),
        edges: cycle.to_vec(),
    }
}

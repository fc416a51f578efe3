//! Reachability and connected components.
//!
//!     e 3 5 1     an edge from 3 to 5 comes (1) or goes (-1) with the next step
//!     n 3 1       so does a node: a root, or one that is labelled

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::rc::Rc;
use std::time::Instant;

use differential_dataflow::algorithms::graphs::propagate::propagate_at;
use differential_dataflow::input::Input;
use differential_dataflow::operators::*;
use timely::dataflow::operators::probe::Handle;

use crate::{number, on_processor};

type Node = u32;
type Label = (Node, Node);

pub fn run(query: String) {
    timely::execute_directly(move |worker| {
        let mut probe = Handle::new();
        let changes: Rc<RefCell<Vec<(Label, isize)>>> = Rc::default();
        let found = changes.clone();
        let (mut edges, mut nodes) = worker.dataflow::<u32, _, _>(|scope| {
            let (edge_input, edges) = scope.new_collection::<(Node, Node), isize>();
            let (node_input, nodes) = scope.new_collection::<Node, isize>();
            let answer = match query.as_str() {
                "reachability" => nodes
                    .clone()
                    .iterate(|scope, reached| {
                        let edges = edges.enter(scope);
                        let nodes = nodes.enter(scope);
                        edges.semijoin(reached).map(|(_, to)| to).concat(nodes).distinct()
                    })
                    .map(|node| (node, node)),
                "components" => {
                    let back = edges.clone().map(|(from, to)| (to, from));
                    let labels = nodes.map(|node| (node, node));
                    propagate_at(edges.concat(back), labels, |label| *label as u64)
                }
                other => panic!("there is no query {other}"),
            };
            answer
                .inspect(move |(row, _, weight)| found.borrow_mut().push((*row, *weight)))
                .probe_with(&mut probe);
            (edge_input, node_input)
        });
        let mut rows: HashMap<Label, isize> = HashMap::new();
        let mut next: (Vec<(Label, isize)>, Vec<(Node, isize)>) = Default::default();
        let mut epoch = 0;
        for line in io::stdin().lock().lines() {
            let line = line.expect("a line");
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["e", from, to, weight] => next.0.push(((number(from), number(to)), number(weight))),
                ["n", node, weight] => next.1.push((number(node), number(weight))),
                ["step"] => {
                    let (used, begin) = (on_processor(), Instant::now());
                    for (edge, weight) in next.0.drain(..) {
                        edges.update(edge, weight);
                    }
                    for (node, weight) in next.1.drain(..) {
                        nodes.update(node, weight);
                    }
                    epoch += 1;
                    edges.advance_to(epoch);
                    nodes.advance_to(epoch);
                    edges.flush();
                    nodes.flush();
                    worker.step_while(|| probe.less_than(&epoch));
                    let clock = begin.elapsed().as_nanos() as u64;
                    println!("{clock} {}", on_processor() - used);
                    for (row, weight) in changes.borrow_mut().drain(..) {
                        let total = rows.remove(&row).unwrap_or(0) + weight;
                        if total != 0 {
                            rows.insert(row, total);
                        }
                    }
                }
                ["value"] => {
                    let mut out = io::stdout().lock();
                    writeln!(out, "{}", rows.len()).expect("a reader");
                    for ((node, label), weight) in &rows {
                        writeln!(out, "{node} {label} {weight}").expect("a reader");
                    }
                }
                _ => panic!("not understood: {line}"),
            }
            io::stdout().flush().expect("a reader");
        }
    });
}

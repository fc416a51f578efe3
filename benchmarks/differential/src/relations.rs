//! Sums and counts by key, a join, and the two queries of `benchmarks/paper_004_columns.py`. The rows
//! of inputs have three numbers: an id, a key, a value; for those two queries the first alone counts.
//!
//!     0 17 3 5 1      the row (17, 3, 5) of input 0 comes (1) or goes (-1) with the next step

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::rc::Rc;
use std::time::Instant;

use differential_dataflow::input::Input;
use timely::dataflow::operators::probe::Handle;

use crate::{number, on_processor};

type Row = (i64, i64, i64);
type Answer = [i64; 5];

pub fn run(query: String) {
    let width = match query.as_str() {
        "group" => 3,
        "join" => 5,
        _ => 2,
    };
    timely::execute_directly(move |worker| {
        let mut probe = Handle::new();
        let changes: Rc<RefCell<Vec<(Answer, isize)>>> = Rc::default();
        let found = changes.clone();
        let mut inputs = worker.dataflow::<u32, _, _>(|scope| {
            let (left_input, left) = scope.new_collection::<Row, isize>();
            let (right_input, right) = scope.new_collection::<Row, isize>();
            if query == "group" {
                left.explode(|(_, key, value)| Some((key, (value as isize, 1_isize))))
                    .count()
                    .inspect(move |((key, (sum, n)), _, weight)| {
                        let row = [*key, *sum as i64, *n as i64, 0, 0];
                        found.borrow_mut().push((row, *weight))
                    })
                    .probe_with(&mut probe);
            } else if query == "pairs" || query == "greatest" {
                let tens = left.filter(|row| row.0 % 10 == 0).map(|row| (row.0 % 500, row.0));
                let fives = right.filter(|row| row.0 % 5 == 0).map(|row| (row.0 % 1000, row.0));
                let mut pairs = tens.join_map(fives, |_, x, y| [*x, *y, 0, 0, 0]);
                if query == "greatest" {
                    pairs = pairs
                        .map(|pair| ((), pair))
                        .reduce(|_, all, out| out.push((*all[all.len() - 1].0, 1)))
                        .map(|(_, pair)| pair);
                }
                pairs
                    .inspect(move |(row, _, weight)| found.borrow_mut().push((*row, *weight)))
                    .probe_with(&mut probe);
            } else {
                let left = left.map(|(id, key, value)| (key, (id, value)));
                let right = right.map(|(id, key, value)| (key, (id, value)));
                left.join_map(right, |key, one, other| [one.0, *key, one.1, other.0, other.1])
                    .inspect(move |(row, _, weight)| found.borrow_mut().push((*row, *weight)))
                    .probe_with(&mut probe);
            }
            [left_input, right_input]
        });
        let mut rows: HashMap<Answer, isize> = HashMap::new();
        let mut next: Vec<(usize, Row, isize)> = Vec::new();
        let mut epoch = 0;
        for line in io::stdin().lock().lines() {
            let line = line.expect("a line");
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                [input, id, key, value, weight] => next.push((
                    number(input),
                    (number(id), number(key), number(value)),
                    number(weight),
                )),
                ["step"] => {
                    let (used, begin) = (on_processor(), Instant::now());
                    for (input, row, weight) in next.drain(..) {
                        inputs[input].update(row, weight);
                    }
                    epoch += 1;
                    for input in &mut inputs {
                        input.advance_to(epoch);
                        input.flush();
                    }
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
                    let mut out = io::BufWriter::new(io::stdout().lock());
                    writeln!(out, "{}", rows.len()).expect("a reader");
                    for (row, weight) in &rows {
                        for field in &row[..width] {
                            write!(out, "{field} ").expect("a reader");
                        }
                        writeln!(out, "{weight}").expect("a reader");
                    }
                }
                _ => panic!("not understood: {line}"),
            }
            io::stdout().flush().expect("a reader");
        }
    });
}

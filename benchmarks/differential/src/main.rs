//! Some queries in differential dataflow, for `benchmarks/loops.py`, `columns.py` and
//! `paper_004_columns.py`.
//!
//! One worker, driven by lines on standard input, so that it takes its changes in turns with others.
//! Lines of changes are told where they are read, in `loops.rs` and `relations.rs`; behind them come
//!
//!     step        run, and answer with nanoseconds on the clock and on the processor
//!     value       answer with the number of rows, and with the rows
//!
//! What is timed is from the first change given to the last one found. Lines are read before, and
//! the rows of the result are put together after.

mod loops;
mod relations;

use std::fmt::Debug;
use std::str::FromStr;

fn main() {
    let query = std::env::args().nth(1).expect("reachability, components, group, join, pairs or greatest");
    match query.as_str() {
        "reachability" | "components" => loops::run(query),
        "group" | "join" | "pairs" | "greatest" => relations::run(query),
        other => panic!("there is no query {other}"),
    }
}

fn number<N: FromStr<Err: Debug>>(word: &str) -> N {
    word.parse().expect("a number")
}

/// Nanoseconds that this thread has run.
fn on_processor() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to `time`, which is there, and keeps nothing of it.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0, "the system tells no time");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

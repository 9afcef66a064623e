//! Rust as `rustc -O` makes it: functions with and without frames, the library's sort with a
//! closure, a hash map, a thread.
use std::collections::HashMap;
use std::hint::black_box;

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}
extern "C" {
    fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
}
const CLOCK_THREAD_CPUTIME_ID: i32 = 3;

fn now_ns() -> u64 {
    let mut used = Timespec { seconds: 0, nanoseconds: 0 };
    unsafe { clock_gettime(CLOCK_THREAD_CPUTIME_ID, &mut used) };
    used.seconds as u64 * 1_000_000_000 + used.nanoseconds as u64
}

fn spend(part: &mut u64, milliseconds: u64, mut call: impl FnMut()) {
    let start = now_ns();
    let mut now = start;
    while now - start < milliseconds * 1_000_000 {
        call();
        now = now_ns();
    }
    *part += now - start;
}

mod sim {
    use super::*;

    /// A leaf that needs no frame.
    #[inline(never)]
    pub fn step(cells: &mut [u64]) -> u64 {
        let mut sum = 0u64;
        for _ in 0..100 {
            for cell in cells.iter_mut() {
                *cell = cell.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                sum = sum.wrapping_add(black_box(*cell));
            }
        }
        sum
    }

    #[inline(never)]
    pub fn order(cells: &[u64]) -> u64 {
        let mut length = 0;
        for _ in 0..4 {
            let mut words: Vec<String> = cells.iter().map(|cell| cell.to_string()).collect();
            words.sort_by(|a, b| b.cmp(a));
            length += words[0].len() as u64;
        }
        length
    }

    #[inline(never)]
    pub fn count(cells: &[u64]) -> u64 {
        let mut counts: HashMap<u64, u64> = HashMap::new();
        for _ in 0..20 {
            for cell in cells {
                *counts.entry(cell % 1000).or_insert(0) += 1;
            }
        }
        counts.len() as u64
    }
}

#[inline(never)]
fn run_steps(part: &mut u64, cells: &mut [u64]) {
    for _ in 0..12 {
        spend(part, 75, || {
            black_box(sim::step(cells));
        });
    }
}

#[inline(never)]
fn run_rest(parts: &mut (u64, u64), cells: &[u64]) {
    for _ in 0..12 {
        spend(&mut parts.0, 45, || {
            black_box(sim::order(cells));
        });
        spend(&mut parts.1, 30, || {
            black_box(sim::count(cells));
        });
    }
}

fn main() {
    let mut cells: Vec<u64> = (0..1000).collect();
    let mixed = |cell: u64| cell.wrapping_mul(0x9e3779b97f4a7c15);
    let others: Vec<u64> = (0..1000).map(mixed).collect();
    let thread = std::thread::spawn(move || {
        let mut parts = (0, 0);
        run_rest(&mut parts, &others);
        parts
    });
    let (order, count) = thread.join().unwrap();
    let mut step = 0;
    run_steps(&mut step, &mut cells);
    let total = (step + order + count) as f64 / 100.0;
    for (name, part) in [("step", step), ("order", order), ("count", count)] {
        println!("{} {:.2}", name, part as f64 / total);
    }
}

// Small loops, each with one line that takes most of the time (see slow_lines.py).
use std::hint::black_box;

const CELLS: usize = 1 << 24;

fn random_numbers(mut seed: u64) -> impl FnMut() -> u64 {
    move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    }
}

struct Memory {
    next: Vec<u32>,
}

fn prepare() -> Memory {
    let mut random = random_numbers(88172645463325252);
    let mut order: Vec<u32> = (0..CELLS as u32).collect();
    for i in (1..CELLS).rev() {
        order.swap(i, (random() % i as u64) as usize);
    }
    Memory { next: order }
}

#[inline(never)]
fn load_chain(memory: &Memory, rounds: u64) -> u64 {
    let (mut at, mut sum) = (0u64, 0u64);
    for i in 0..rounds {
        at = black_box((memory.next[at as usize] as u64 + i) % CELLS as u64); // slow
        sum = black_box(sum + i);
        sum = black_box(sum ^ 3);
    }
    sum + at
}

#[inline(never)]
fn divide(_memory: &Memory, rounds: u64) -> u64 {
    let (mut x, mut sum, big) = (1u64, 0u64, black_box(0x123456789abcdefu64));
    for i in 0..rounds {
        x = black_box(big / (x | 17) / (x | 17) / (x | 1)); // slow
        sum = black_box(sum + i);
    }
    sum + x
}

#[inline(never)]
fn root(_memory: &Memory, rounds: u64) -> u64 {
    let (mut x, mut sum) = (black_box(0.5f64), 0u64);
    for i in 0..rounds {
        x = black_box((x + 1.0).sqrt().sqrt().sqrt().sqrt()); // slow
        sum += i;
        sum = std::hint::black_box(sum);
    }
    sum + x as u64
}

fn cpu_time() -> f64 {
    let mut now = [0i64; 2];
    extern "C" {
        fn clock_gettime(clock: i32, now: *mut i64) -> i32;
    }
    unsafe { clock_gettime(3, now.as_mut_ptr()) };
    now[0] as f64 + 1e-9 * now[1] as f64
}

fn main() {
    let memory = prepare();
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let kernels: [(&str, fn(&Memory, u64) -> u64, u64); 3] =
        [("load_chain", load_chain, 100000), ("divide", divide, 1000000), ("root", root, 1000000)];
    for (name, kernel, batch) in kernels {
        if !wanted.is_empty() && !wanted.iter().any(|one| one == name) {
            continue;
        }
        let (begin, mut spent, mut rounds) = (cpu_time(), 0.0, 0);
        while spent < 0.15 {
            black_box(kernel(&memory, batch));
            rounds += batch;
            spent = cpu_time() - begin;
        }
        println!("{} {:.6}", name, 1e9 * spent / rounds as f64);
    }
}

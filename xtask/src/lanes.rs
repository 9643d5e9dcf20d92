//! Work that waits most of its time, done two at a time.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Does `work` for each item, begun in their order, two at a time. Goes on after a fault, and names all.
pub fn side_by_side<T: Sync>(
    items: &[T],
    work: impl Fn(&T) -> Result<(), String> + Sync,
) -> Result<(), String> {
    let next = AtomicUsize::new(0);
    let lane = || {
        let items = std::iter::from_fn(|| items.get(next.fetch_add(1, Ordering::Relaxed)));
        items.filter_map(|item| work(item).err()).collect::<Vec<String>>()
    };
    let faults = std::thread::scope(|scope| {
        let other = scope.spawn(lane);
        let mut faults = lane();
        faults.extend(other.join().unwrap_or_else(|_| vec!["a lane panicked".into()]));
        faults
    });
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn two_are_done_at_a_time_and_every_fault_is_named() {
        // Each waits for another, which with one lane would never come.
        let pair = Barrier::new(2);
        let done = side_by_side(&[1, 2, 3, 4], |number| {
            pair.wait();
            if number % 2 == 0 { Err(format!("fault {number}")) } else { Ok(()) }
        });
        let fault = done.unwrap_err();
        assert!(fault.contains("fault 2") && fault.contains("fault 4") && !fault.contains('3'), "{fault}");
    }
}

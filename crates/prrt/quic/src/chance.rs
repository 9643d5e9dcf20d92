//! What quinn-proto takes for random numbers of the system: those of a seed.

use std::cell::Cell;
use std::thread;

use noctule_netsim::Random;

thread_local! {
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// Runs `work` on a thread of its own, whose random numbers follow from `seed`: generators of a thread live as long as it.
pub fn with_seed<T: Send>(seed: u64, work: impl FnOnce() -> T + Send) -> T {
    let seeded = || {
        STATE.set(seed);
        work()
    };
    let done = thread::scope(|scope| scope.spawn(seeded).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The backend of getrandom, which `.cargo/config.toml` chooses.
///
/// # Safety
/// `destination` is valid for `length` bytes, which getrandom sees to.
#[unsafe(no_mangle)]
unsafe extern "Rust" fn __getrandom_v03_custom(
    destination: *mut u8,
    length: usize,
) -> Result<(), getrandom::Error> {
    let state = STATE.get();
    STATE.set(state.wrapping_add(1));
    let mut random = Random::new(state);
    for place in 0..length {
        // SAFETY: within the `length` bytes of the caller.
        unsafe { destination.add(place).write(random.bits() as u8) };
    }
    Ok(())
}

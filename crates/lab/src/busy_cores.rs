//! Cores kept busy while a cell is measured: the option `load = "all"`, or a list of cores such as `"1"`.
//!
//! One thread per core, of ordinary priority, that computes and never sleeps: what a companion computer's other
//! programs are to the one that talks to the board, at their worst.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use noctule_sys::scheduling;

/// Why no cores can be kept busy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error("load = \"{0}\" is none of none, all or cores such as \"0,1\"")]
    Unknown(String),
    #[error("load: core {absent} is not one this process may use ({allowed:?})")]
    Absent { absent: u32, allowed: Vec<u32> },
    #[error("cannot start a thread to load a core: {0}")]
    Thread(io::Error),
}

/// Which cores `load` means, of those there are.
///
/// # Errors
/// It names no cores, or one that this process may not use.
pub(crate) fn cores(load: Option<&str>, allowed: &[u32]) -> Result<Vec<u32>, LoadError> {
    match load {
        None | Some("none") => Ok(Vec::new()),
        Some("all") => Ok(allowed.to_vec()),
        Some(listed) => {
            let parsed: Option<Vec<u32>> = listed.split(',').map(|core| core.trim().parse().ok()).collect();
            let cores = parsed.ok_or_else(|| LoadError::Unknown(listed.to_owned()))?;
            match cores.iter().find(|core| !allowed.contains(core)) {
                Some(&absent) => Err(LoadError::Absent { absent, allowed: allowed.to_vec() }),
                None => Ok(cores),
            }
        }
    }
}

/// Busy until dropped.
pub(crate) struct BusyCores {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BusyCores {
    /// Keeps these cores busy.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn start(cores: &[u32]) -> Result<BusyCores, LoadError> {
        let mut busy = BusyCores { stop: Arc::new(AtomicBool::new(false)), threads: Vec::new() };
        for &core in cores {
            let stop = Arc::clone(&busy.stop);
            let burn = move || {
                // The core was found among those allowed; if it is gone since, another is burdened.
                let _ = scheduling::pin_to_core(core);
                let mut sum = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    sum = std::hint::black_box(sum.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
                }
            };
            let thread = std::thread::Builder::new().name("load".into()).spawn(burn);
            busy.threads.push(thread.map_err(LoadError::Thread)?);
        }
        Ok(busy)
    }
}

impl Drop for BusyCores {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It cannot panic.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_names_cores_that_there_are() {
        let allowed = [0, 3];
        assert!(cores(None, &allowed).unwrap().is_empty());
        assert_eq!(cores(Some("all"), &allowed).unwrap(), [0, 3]);
        assert_eq!(cores(Some("3"), &allowed).unwrap(), [3]);
        assert_eq!(
            cores(Some("1"), &allowed).unwrap_err().to_string(),
            "load: core 1 is not one this process may use ([0, 3])"
        );
        assert_eq!(
            cores(Some("much"), &allowed).unwrap_err().to_string(),
            "load = \"much\" is none of none, all or cores such as \"0,1\""
        );
    }
}

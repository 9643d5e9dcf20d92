//! Real-time settings of a loop, as far as this user may have them, and a report whether the loop kept its time.

use std::error::Error;

use noctule::{Node, NodeBuilder};
use noctule_sys::scheduling::{
    Awake, CoreTime, lock_memory, set_exact_timers, set_fifo_priority, stay_awake,
};
use noctule_teleop::lateness::Lateness;

use crate::Outcome;

/// The priority was refused.
#[derive(Debug, thiserror::Error)]
#[error("priority {priority} was refused: {source}; give the process CAP_SYS_NICE or leave out --priority")]
pub(super) struct PriorityRefused {
    priority: u32,
    source: std::io::Error,
}

/// Joins. The node's threads get a priority below the loop's: of equals under SCHED_FIFO none interrupts the other.
pub(super) fn open(builder: NodeBuilder, priority: Option<u32>) -> Result<Node, Box<dyn Error>> {
    if let Some(priority) = priority {
        take_priority(priority.saturating_sub(1).max(1))?;
    }
    Ok(builder.open()?)
}

fn take_priority(priority: u32) -> Result<(), PriorityRefused> {
    set_fifo_priority(priority).map_err(|source| PriorityRefused { priority, source })
}

/// While a loop runs.
pub(super) struct TimeKeeping {
    priority: Option<u32>,
    _awake: Option<Awake>,
    before: Option<CoreTime>,
}

impl TimeKeeping {
    /// For the calling thread, in which the loop will run.
    pub(super) fn begin(priority: Option<u32>) -> Result<TimeKeeping, PriorityRefused> {
        // Without it the kernel may wake a sleeper 50 µs late; refused, the lateness is larger and is counted.
        let _ = set_exact_timers();
        let mut awake = None;
        if let Some(priority) = priority {
            take_priority(priority)?;
            // Both help and neither is promised: what they would have saved is counted, too.
            let _ = lock_memory();
            awake = stay_awake().ok();
        }
        Ok(TimeKeeping { priority, _awake: awake, before: CoreTime::now() })
    }

    /// Says how a loop kept its time; a run whose loop was late too often is not valid.
    pub(super) fn judged(&self, name: &str, lateness: &Lateness) -> Outcome {
        anstream::eprintln!("noctule: {name}: {lateness}");
        if lateness.is_valid() {
            return Outcome::Done;
        }
        let stolen = self.before.and_then(|before| CoreTime::now()?.stolen_share_since(before));
        let host = match stolen {
            Some(share) if share > 0.0 => {
                format!("; the host of this guest took {:.2} % of its cores' time meanwhile", 100.0 * share)
            }
            _ => String::new(),
        };
        let more = if self.priority.is_none() { ", and --priority 30 lets the loop go first" } else { "" };
        anstream::eprintln!(
            "noctule: {name}: more than 0.1 % of the periods were late, so the run is not valid{host}; `noctule doctor` names causes{more}"
        );
        Outcome::NotValid
    }
}

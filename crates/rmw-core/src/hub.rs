//! The threads that have everything of a context that receives: lanes, mostly one.
//!
//! A lane sleeps on all its rings at once, moves what comes into the queues of its readers, keeps the calls of clients going, and looks at partners and
//! deadlines when the library says that something has changed. Others give it orders through its [`Door`].

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant as Timer};

use noctule::{Subscriber, Wait, WaitSet};

use crate::door::{Door, LaneDoor, Numbered, Order, Task};
use crate::gid::Gid;
use crate::graph::{Entry, Misfit, Way, misfit};
use crate::participant::{Registry, Watched};
use crate::signal::lock;
use crate::status::{Kind, Status};

/// A publisher that was busy is looked at again after this.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// Deadlines are looked at no more often than this.
const DEADLINE_MIN: Duration = Duration::from_millis(1);

/// Words that the kernel waits for at once: one of the lane, one of each task, and one of each publisher that a task receives from.
const WORDS_MAX: usize = 128;
/// Words that a lane keeps when it gives tasks away, so that the next publisher finds room.
const WORDS_KEPT: usize = 96;

/// The hub of a context; dropping it ends its threads.
pub(crate) struct Hub {
    door: Arc<Door>,
}

/// Ends that do not fit, each reported once.
type Misfits = Mutex<BTreeSet<(u64, Gid)>>;

struct Loop {
    door: Arc<Door>,
    lane: Arc<LaneDoor>,
    /// The first lane also looks after publishers.
    is_first: bool,
    registry: Arc<Registry>,
    set: WaitSet,
    tasks: Vec<Numbered>,
    misfits: Arc<Misfits>,
    is_busy: bool,
    /// The shortest DEADLINE of a publisher.
    offered: Option<Duration>,
    alarm: Alarm,
}

/// When something must be done though nothing comes. What comes meanwhile does not put it off.
#[derive(Debug, Default)]
struct Alarm(Option<Timer>);

impl Alarm {
    /// Something is due in `due`, if not earlier by what was reported before; how long that is from `now`. `None`: nothing is due.
    fn set(&mut self, now: Timer, due: Option<Duration>) -> Option<Duration> {
        let due = due.and_then(|due| now.checked_add(due));
        self.0 = self.0.into_iter().chain(due).min();
        self.0.map(|at| at.saturating_duration_since(now))
    }

    /// Whether the time has come; then it must be set anew.
    fn takes(&mut self, now: Timer) -> bool {
        self.0.take_if(|at| *at <= now).is_some()
    }
}

impl Hub {
    pub(crate) fn start(registry: Arc<Registry>) -> io::Result<Hub> {
        let misfits = Arc::<Misfits>::default();
        let start = move |door: Arc<Door>, at: usize| {
            let set = WaitSet::new(Wait::Block);
            let lane = Arc::new(LaneDoor::new(set.waker()));
            let run = Loop {
                door,
                lane: Arc::clone(&lane),
                is_first: at == 0,
                registry: Arc::clone(&registry),
                set,
                tasks: Vec::new(),
                misfits: Arc::clone(&misfits),
                is_busy: false,
                offered: None,
                alarm: Alarm::default(),
            };
            let thread = std::thread::Builder::new().name("noctule-rmw".into()).spawn(move || run.run())?;
            lane.set_thread(thread.thread().id());
            Ok((lane, thread))
        };
        Ok(Hub { door: Door::open(Box::new(start))? })
    }

    pub(crate) fn door(&self) -> &Arc<Door> {
        &self.door
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.door.end();
    }
}

impl Loop {
    fn run(mut self) {
        loop {
            loop {
                let Some(order) = self.lane.next() else { break };
                if matches!(order, Order::Stop) {
                    return self.lane.shut();
                }
                self.obey(order);
            }
            if self.lane.takes_look() {
                self.look();
            }
            let due = self.next_due();
            let timeout = self.alarm.set(Timer::now(), due);
            if let noctule::Ready::Sample(at) = self.set.wait(&mut self.tasks, timeout)
                && !self.tasks[at].task.drain()
            {
                // Unread samples would keep it ready for ever.
                let gone = self.tasks.remove(at);
                self.door.forget(gone.number);
            }
            if timeout.is_some() && self.alarm.takes(Timer::now()) {
                self.tend();
            }
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Add(task) => self.tasks.push(task),
            Order::Remove(number, done) => {
                let Some(at) = self.tasks.iter().position(|task| task.number == number) else {
                    return self.door.order(Order::Remove(number, done));
                };
                self.tasks.remove(at);
                self.door.forget(number);
                // The thread that asked may not wait.
                let _ = done.send(());
            }
            Order::Request { number, sequence, bytes } => match self.task(number) {
                Some(task) => task.request(sequence, &bytes),
                None => self.door.order(Order::Request { number, sequence, bytes }),
            },
            Order::Reply { number, id, bytes } => match self.task(number) {
                Some(task) => task.reply(id, &bytes),
                None => self.door.order(Order::Reply { number, id, bytes }),
            },
            Order::Stop => {}
        }
    }

    fn task(&mut self, number: u64) -> Option<&mut Box<dyn Task>> {
        self.tasks.iter_mut().find(|task| task.number == number).map(|task| &mut task.task)
    }

    /// Work that falls due by time alone: deadlines, and rings that could not be looked at before.
    fn tend(&mut self) {
        let door = &self.door;
        self.tasks.retain_mut(|task| {
            let stays = task.task.tend();
            if !stays {
                door.forget(task.number);
            }
            stays
        });
        if self.is_first && (self.is_busy || self.offered.is_some()) {
            self.look_at_writers();
        }
    }

    fn next_due(&self) -> Option<Duration> {
        let tasks = self.tasks.iter().filter_map(|task| task.task.next_due());
        let again = self.is_busy.then_some(LOOK_AGAIN);
        tasks.chain(self.offered.map(|period| period.max(DEADLINE_MIN))).chain(again).min()
    }

    fn writers(&self) -> Vec<Arc<dyn Watched>> {
        lock(&self.registry.writers).values().filter_map(Weak::upgrade).collect()
    }

    fn look_at_writers(&mut self) {
        let writers = self.writers();
        self.offered = writers.iter().filter_map(|writer| writer.deadline()).min();
        self.is_busy = false;
        for writer in writers {
            self.is_busy |= !writer.refresh();
        }
    }

    /// Partners may have come or gone.
    fn look(&mut self) {
        if self.is_first {
            self.look_at_writers();
        }
        self.tasks.iter_mut().for_each(|task| task.task.look());
        self.divide();
        self.look_for_misfits();
        self.registry.ring();
    }

    /// Gives tasks away that are more than the kernel waits for at once.
    fn divide(&mut self) {
        let words = |task: &mut Numbered| 1 + task.as_mut().publishers();
        let all: Vec<usize> = self.tasks.iter_mut().map(words).collect();
        // And one of the lane.
        if all.iter().sum::<usize>() < WORDS_MAX {
            return;
        }
        let mut sum = 1;
        let kept = all.iter().take_while(|words| {
            sum += **words;
            sum <= WORDS_KEPT
        });
        // One that has too many alone stays.
        let kept = kept.count().max(1);
        if kept < self.tasks.len() {
            let surplus = self.tasks.split_off(kept);
            self.tasks.extend(self.door.divide(surplus));
        }
    }

    fn look_for_misfits(&mut self) {
        let others = self.registry.others();
        let own = lock(&self.registry.own).clone();
        let mut misfits = lock(&self.misfits);
        misfits.retain(|(number, _)| own.contains_key(number));
        let is_mine = |number: u64, way: Way| match way {
            Way::Writes => self.is_first,
            Way::Reads => self.tasks.iter().any(|task| task.number == number),
        };
        for (number, ours) in own.iter().filter(|(number, ours)| is_mine(**number, ours.way)) {
            let all = own.values().chain(&others);
            for other in all.filter(|other| other.topic == ours.topic && other.way != ours.way) {
                let (writer, reader) = if ours.way == Way::Writes { (ours, other) } else { (other, ours) };
                let Some(why) = misfit(writer, reader) else { continue };
                if misfits.insert((*number, other.gid)) {
                    self.tell(*number, ours, why);
                }
            }
        }
    }

    fn tell(&self, number: u64, ours: &Entry, why: Misfit) {
        let (kind, policy) = match why {
            Misfit::Type => (Kind::IncompatibleType, 0),
            Misfit::Policy(policy) => (Kind::IncompatibleQos, policy),
        };
        let change = |status: &mut Status| {
            status.policy = policy;
            let total = status.total + 1;
            status.ever(total)
        };
        if ours.way == Way::Writes {
            let writer = lock(&self.registry.writers).get(&number).and_then(Weak::upgrade);
            if let Some(writer) = writer {
                writer.statuses().update(kind, change);
            }
        } else if let Some(statuses) =
            self.tasks.iter().find(|task| task.number == number).and_then(|task| task.task.statuses())
        {
            statuses.update(kind, change);
        }
    }
}

impl AsMut<Subscriber> for Numbered {
    fn as_mut(&mut self) -> &mut Subscriber {
        (*self.task).as_mut()
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hub")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_in_between_does_not_put_off_what_is_due() {
        let (start, ms) = (Timer::now(), Duration::from_millis);
        let mut alarm = Alarm::default();
        assert_eq!(alarm.set(start, None), None);
        assert!(!alarm.takes(start));
        assert_eq!(alarm.set(start, Some(ms(5))), Some(ms(5)));
        // A sample each millisecond, and the same period is requested at each.
        for passed in 1..5 {
            assert!(!alarm.takes(start + ms(passed)));
            assert_eq!(alarm.set(start + ms(passed), Some(ms(5))), Some(ms(5 - passed)));
        }
        assert!(alarm.takes(start + ms(5)));
        assert!(!alarm.takes(start + ms(5)));
        assert_eq!(alarm.set(start + ms(5), Some(ms(5))), Some(ms(5)));
        assert_eq!(alarm.set(start + ms(6), Some(ms(1))), Some(ms(1)), "something earlier");
        assert_eq!(alarm.set(start + ms(9), None), Some(Duration::ZERO), "late");
    }
}

//! Where a master's hand comes from, while it runs.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use noctule::{Node, NodeError, ReceiveError, TypedSubscriber};
use noctule_arm::hand::Hand;
use noctule_sys::clock::realtime_ns;

use super::HandEstimator;
use super::device::{Decoder, DeviceKind, NoResolution, Scale};
use super::trajectory::Trajectory;
use crate::messages::{INPUT_TOPIC, OperatorInput};

/// Reads of a device that wait for the master; a device that is faster waits itself, in the kernel.
const READS_MAX: usize = 64;
/// Most of one read: 64 events.
const READ_BYTES_MAX: usize = 64 * 24;
/// An event is taken to be no older than this: a step of the wall clock moves events, too.
const EVENT_AGE_MAX_NS: i64 = 1_000_000_000;

/// Where a master's hand comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// From the topic `teleop/input`: the page.
    Page,
    /// A synthetic operator.
    Synthetic(Hand),
    /// A recorded hand, once.
    Trajectory(Trajectory),
    /// A device of this machine.
    Device(DeviceKind, PathBuf),
}

/// Why a device is no source.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// It cannot be opened.
    #[error("cannot open {path}: {source}; `ls -l /dev/input` shows whose it is, usually the group input's")]
    Open {
        /// Path of the device.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Its counts cannot be turned into lengths.
    #[error("the touchpad {path}: {source}")]
    NoResolution {
        /// Path of the device.
        path: PathBuf,
        /// Why its counts have no length.
        source: NoResolution,
    },
    /// It was pulled out, or its file ended.
    #[error("the device {path} has gone; the arm stops by the age of its last command")]
    Gone {
        /// Path of the device.
        path: PathBuf,
    },
}

/// A source that is open.
pub(super) enum OpenSource {
    Page(Box<TypedSubscriber<OperatorInput>>),
    Synthetic(Hand),
    Trajectory { trajectory: Trajectory, next: usize },
    Device(Box<Device>),
}

/// A device that a thread reads.
pub(super) struct Device {
    path: PathBuf,
    decoder: Decoder,
    reads: Receiver<Vec<u8>>,
    /// Source time of the last report: what the kernel stamped before the hand was last seen still counts, too.
    newest_ns: i64,
}

/// This moment, ns: by the node's clock, and since the hand's time began; before that it is negative.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub(super) now_ns: i64,
    pub(super) since_ns: i64,
}

impl OpenSource {
    pub(super) fn open(node: &Node, source: &Source) -> Result<OpenSource, super::MasterError> {
        Ok(match source {
            Source::Page => OpenSource::Page(Box::new(inputs(node)?)),
            Source::Synthetic(hand) => OpenSource::Synthetic(*hand),
            Source::Trajectory(trajectory) => {
                OpenSource::Trajectory { trajectory: trajectory.clone(), next: 0 }
            }
            Source::Device(kind, path) => OpenSource::Device(Box::new(Device::open(*kind, path)?)),
        })
    }

    /// Whether its time begins only when a subscriber matches.
    pub(super) fn waits_for_readers(&self) -> bool {
        matches!(self, OpenSource::Synthetic(_))
    }

    /// Hands the estimator what is new.
    pub(super) fn feed(&mut self, at: Moment, estimator: &mut HandEstimator) -> Result<(), DeviceError> {
        match self {
            OpenSource::Page(inputs) => drain(inputs, estimator),
            OpenSource::Synthetic(hand) => {
                *estimator = HandEstimator::default();
                estimator.handle_input(at.now_ns, synthetic(*hand, at.since_ns as f64 * 1e-9));
            }
            OpenSource::Trajectory { trajectory, next } => {
                while let Some(row) = trajectory.rows().get(*next).filter(|row| row.at_ns <= at.since_ns) {
                    let source_ns = at.now_ns - (at.since_ns - row.at_ns);
                    estimator.handle_input(source_ns, input(row.position_m, row.clutch));
                    *next += 1;
                }
            }
            OpenSource::Device(device) => device.feed(at.now_ns, estimator)?,
        }
        Ok(())
    }

    /// The velocity of a hand that is known without measuring it, m/s.
    pub(super) fn true_velocity(&self, at: Moment) -> Option<[f64; 3]> {
        match self {
            OpenSource::Synthetic(hand) => Some(hand.at(at.since_ns as f64 * 1e-9).velocity_m_s.into()),
            _ => None,
        }
    }
}

fn inputs(node: &Node) -> Result<TypedSubscriber<OperatorInput>, NodeError> {
    node.subscriber(INPUT_TOPIC).typed::<OperatorInput>().open()
}

fn input(position_m: [f64; 3], clutch: bool) -> OperatorInput {
    OperatorInput { operator: 1, position_m, clutch, scale: 1.0, bound_ns: 0 }
}

/// The clutch is pressed after a moment, so that it is seen released before.
fn synthetic(hand: Hand, time_s: f64) -> OperatorInput {
    input(hand.at(time_s).position_m.into(), time_s > 0.5)
}

fn drain(inputs: &mut TypedSubscriber<OperatorInput>, estimator: &mut HandEstimator) {
    loop {
        match inputs.take() {
            Ok(Some(sample)) => {
                let Some(source) = sample.info().source_time else { continue };
                estimator.handle_input(source.ns(), sample.into_value());
            }
            Ok(None) => return,
            // A broken publisher was counted by the library; the next one may be whole.
            Err(ReceiveError::Take(_)) => return,
            Err(_) => {}
        }
    }
}

impl Device {
    fn open(kind: DeviceKind, path: &Path) -> Result<Device, DeviceError> {
        let failed = |source| DeviceError::Open { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(failed)?;
        // A file or pipe with recorded events has no axes that could be requested.
        let stated = |axis| noctule_sys::input_device::axis(file.as_fd(), axis).ok().flatten();
        let scale = Scale::new(kind, stated)
            .map_err(|source| DeviceError::NoResolution { path: path.to_owned(), source })?;
        let (sender, reads) = sync_channel(READS_MAX);
        let work = move || {
            let mut buffer = [0; READ_BYTES_MAX];
            // A read that fails or is empty: the device has gone, and the channel closes with this thread.
            while let Ok(length @ 1..) = file.read(&mut buffer) {
                if sender.send(buffer[..length].to_vec()).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("input-device".into()).spawn(work).map_err(failed)?;
        Ok(Device { path: path.to_owned(), decoder: Decoder::new(kind, scale), reads, newest_ns: 0 })
    }

    fn feed(&mut self, now_ns: i64, estimator: &mut HandEstimator) -> Result<(), DeviceError> {
        let end = loop {
            match self.reads.try_recv() {
                Ok(bytes) => self.decoder.handle_bytes(&bytes),
                Err(end) => break end,
            }
        };
        let wall_ns = realtime_ns();
        self.decoder.handle_time(wall_ns);
        while let Some(report) = self.decoder.poll_report() {
            // The kernel stamps events by the wall clock; what counts is how old they are.
            let age_ns = wall_ns.saturating_sub(report.at_ns).clamp(0, EVENT_AGE_MAX_NS);
            self.newest_ns = (now_ns - age_ns).max(self.newest_ns + 1);
            estimator.handle_input(self.newest_ns, input(report.position_m, report.clutch));
        }
        // The device's last bytes count, too.
        match end {
            TryRecvError::Empty => Ok(()),
            TryRecvError::Disconnected => Err(DeviceError::Gone { path: self.path.clone() }),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_trajectory_is_replayed_at_its_times() {
        let text = "seconds,x_m,y_m,z_m,clutch\n0,0,0,0,0\n0.01,0.001,0,0,1\n5,0.2,0,0,1\n";
        let mut source = OpenSource::Trajectory { trajectory: text.parse().unwrap(), next: 0 };
        let mut estimator = HandEstimator::default();
        let at = |since_ns| Moment { now_ns: 1_000_000_000_000 + since_ns, since_ns };
        source.feed(at(0), &mut estimator).unwrap();
        assert!(!estimator.pose(at(0).now_ns).unwrap().0.clutch);
        source.feed(at(12_000_000), &mut estimator).unwrap();
        let (pose, _) = estimator.pose(at(10_000_000).now_ns).unwrap();
        assert_eq!((pose.clutch, pose.position_m[0]), (true, 0.001));
    }

    #[test]
    fn a_device_that_ends_is_named_and_one_that_is_not_there_too() {
        let path = std::env::temp_dir().join(format!("noctule-device-{}", std::process::id()));
        std::fs::write(&path, [0_u8; 48]).unwrap();
        let mut device = Device::open(DeviceKind::Mouse, &path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut estimator = HandEstimator::default();
        let gone = loop {
            if let Err(gone) = device.feed(5_000_000_000, &mut estimator) {
                break gone.to_string();
            }
            std::thread::yield_now();
        };
        assert!(gone.contains("has gone"), "{gone}");
        assert!(estimator.pose(5_000_000_000).is_some());
        let refused = Device::open(DeviceKind::Mouse, Path::new("/dev/input/none")).err().unwrap();
        assert!(refused.to_string().contains("ls -l /dev/input"), "{refused}");
    }
}

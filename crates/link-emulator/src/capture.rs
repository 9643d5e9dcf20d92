//! Captures of each node's packets, as pcap files.
//!
//! One file per node, as a tool at its interface would write it: what it sent at the time it was
//! sent, what it got at the time it got it. Nanosecond pcap, link type RAW (101): bare IP packets.
//! Another thread writes, over a queue of limited length, so that a slow disk costs packets of the
//! capture, counted, and not the link's timing.
//!
//! Reference: draft-ietf-opsawg-pcap (PCAP Capture File Format).

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use noctule_sys::clock;

use crate::star::node_name;

/// Packets that wait for the disk.
const QUEUE_PACKETS: usize = 8_192;
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const LINK_TYPE_RAW: u32 = 101;
const SNAP_BYTES: u32 = 65_535;

/// Files being written.
#[derive(Debug)]
pub struct Capture {
    packets: Option<SyncSender<Captured>>,
    writer: Option<JoinHandle<io::Result<()>>>,
    /// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC` at the start, for all packets: a clock step during the
    /// capture must not reorder it.
    to_realtime_ns: i64,
    missed: u64,
}

#[derive(Debug)]
struct Captured {
    node: usize,
    realtime_ns: i64,
    bytes: Vec<u8>,
}

/// The file of a node: `link-a.pcap` for `link.pcap`.
pub fn file_of(path: &Path, node: usize) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map_or("pcap".into(), |extension| extension.to_string_lossy());
    path.with_file_name(format!("{stem}-{}.{extension}", node_name(node)))
}

impl Capture {
    /// Creates one file per node beside `path`.
    pub fn create(path: &Path, nodes: usize) -> io::Result<Capture> {
        let mut files = Vec::with_capacity(nodes);
        for node in 0..nodes {
            let mut file = BufWriter::new(File::create(file_of(path, node))?);
            header(&mut file)?;
            file.flush()?;
            files.push(file);
        }
        let (sender, receiver) = sync_channel(QUEUE_PACKETS);
        let clocks = clock::three_clocks();
        Ok(Capture {
            packets: Some(sender),
            writer: Some(
                std::thread::Builder::new().name("capture".into()).spawn(|| write(receiver, files))?,
            ),
            to_realtime_ns: clocks.realtime_ns - clocks.monotonic_before_ns,
            missed: 0,
        })
    }

    /// A packet passed a node's interface.
    pub fn record(&mut self, node: usize, monotonic_ns: i64, packet: &[u8]) {
        let captured =
            Captured { node, realtime_ns: monotonic_ns + self.to_realtime_ns, bytes: packet.to_vec() };
        let Some(packets) = &self.packets else { return };
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = packets.try_send(captured) {
            self.missed += 1;
        }
    }

    /// Packets not written.
    pub fn missed(&self) -> u64 {
        self.missed
    }
}

impl Drop for Capture {
    /// Writes what waits.
    fn drop(&mut self) {
        self.packets = None;
        if let Some(writer) = self.writer.take() {
            // A disk that is full has already cut the file; and it cannot be reported here.
            let _ = writer.join();
        }
    }
}

fn write(packets: Receiver<Captured>, mut files: Vec<BufWriter<File>>) -> io::Result<()> {
    while let Ok(first) = packets.recv() {
        record(&mut files, &first)?;
        while let Ok(next) = packets.try_recv() {
            record(&mut files, &next)?;
        }
        // Nothing waits: what a reader sees now is whole.
        files.iter_mut().try_for_each(Write::flush)?;
    }
    Ok(())
}

fn record(files: &mut [BufWriter<File>], captured: &Captured) -> io::Result<()> {
    let Some(file) = files.get_mut(captured.node) else { return Ok(()) };
    let length = captured.bytes.len().min(SNAP_BYTES as usize);
    let seconds = captured.realtime_ns.div_euclid(1_000_000_000) as u32;
    let nanoseconds = captured.realtime_ns.rem_euclid(1_000_000_000) as u32;
    for field in [seconds, nanoseconds, length as u32, captured.bytes.len() as u32] {
        file.write_all(&field.to_le_bytes())?;
    }
    file.write_all(&captured.bytes[..length])
}

fn header(file: &mut impl Write) -> io::Result<()> {
    file.write_all(&MAGIC_NANOSECONDS.to_le_bytes())?;
    file.write_all(&2_u16.to_le_bytes())?;
    file.write_all(&4_u16.to_le_bytes())?;
    for field in [0, 0, SNAP_BYTES, LINK_TYPE_RAW] {
        file.write_all(&field.to_le_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_has_a_file_with_its_packets() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("link.pcap");
        let mut capture = Capture::create(&path, 2).unwrap();
        let at_ns = clock::now_ns();
        capture.record(0, at_ns, b"first");
        capture.record(1, at_ns + 1_500_000_000, b"other");
        capture.record(0, at_ns + 5, b"second");
        drop(capture);
        let a = std::fs::read(directory.path().join("link-a.pcap")).unwrap();
        let b = std::fs::read(directory.path().join("link-b.pcap")).unwrap();
        assert_eq!((a.len(), b.len()), (24 + 16 + 5 + 16 + 6, 24 + 16 + 5));
        assert_eq!(a[..8], [0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0]);
        assert_eq!((a[20], &a[40..45], &a[61..]), (101, &b"first"[..], &b"second"[..]));
        let ns = |bytes: &[u8]| {
            let word = |at: usize| i64::from(u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()));
            word(24) * 1_000_000_000 + word(28)
        };
        assert_eq!(ns(&b) - ns(&a), 1_500_000_000);
    }
}

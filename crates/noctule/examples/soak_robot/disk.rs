//! A recorder on a disk that becomes full: `noctule record` in a mount namespace of its own, on a tmpfs of limited size.

use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use noctule_sys::clock::{now_ns, sleep_until};

use crate::hosts::Hosts;

/// 1.1 MB/s are recorded, for 15 s at most.
const DISK_MIB: u32 = 32;

pub struct Recorder {
    folder: PathBuf,
    /// A shell that records until its input ends, then checks what was recorded, the newest file first.
    child: Child,
}

impl Recorder {
    /// With a disk of its own, seen by it alone, over `folder`.
    pub fn start(hosts: &Hosts, program: &Path, folder: &Path, key: &Path) -> Recorder {
        let (program, place) = (program.display(), folder.display());
        // A file that was written when the disk became full ends there, which the check answers by 1; the last one has its index.
        let script = format!(
            "mount -t tmpfs -o size={DISK_MIB}m tmpfs {place} || exit 9
             {program} record --out {place}/day.mcap > /dev/null 2> {place}.said & recorder=$!
             read end; kill -TERM $recorder; wait $recorder
             for file in $(ls -t {place}/*.mcap); do
                 {program} record --check $file > /dev/null 2>> {place}.said; code=$?
                 [ $code -le ${{allowed:-0}} ] || {{ ls -l --full-time {place} >> {place}.said; exit 8; }}; allowed=1
             done"
        );
        let start = || {
            let mut command = Command::new("unshare");
            command.args(["--mount", "--propagation", "private", "sh", "-c", &script]);
            command.env("NOCTULE_KEY_FILE", key).stdin(Stdio::piped()).stdout(Stdio::null()).spawn()
        };
        let child = hosts.robots[0].run(start).unwrap();
        Recorder { folder: folder.to_owned(), child }
    }

    /// Its folder as this process sees it.
    fn folder(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{}", self.child.id(), self.folder.display()))
    }

    /// Fills its disk, for so long, and has it record on after that.
    ///
    /// # Errors
    /// The disk could not be filled or emptied.
    pub fn fill_disk(&mut self, length_ns: i64) -> io::Result<()> {
        let filler = self.folder().join("filler");
        let mut file = std::fs::File::create(&filler)?;
        loop {
            match file.write_all(&[7; 64 << 10]) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => break,
                Err(error) => return Err(error),
            }
        }
        sleep_until(now_ns() + length_ns);
        // The disk has room once both the name and the open file are gone.
        drop(file);
        std::fs::remove_file(&filler)?;
        sleep_until(now_ns() + 2_000_000_000);
        Ok(())
    }

    /// Ends it as a service manager does; then it opens every file that it has left.
    ///
    /// # Errors
    /// A file does not open, the last is not whole, or the recorder did not notice that its disk was full.
    pub fn end(mut self) -> io::Result<()> {
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        let said = std::fs::read_to_string(self.folder.with_extension("said"))?;
        match status.code() {
            Some(0) if said.contains("is full") => Ok(()),
            _ => Err(io::Error::other(format!("{status}; it said: {said}"))),
        }
    }
}

//! The same on a disk of its own whose power is cut: an image of ext4, copied at the moment of the cut.

use std::path::{Path, PathBuf};
use std::process::Command;

use noctule_sys::clock::now_ns;

use crate::judge;
use crate::trial::{Outcome, Plan, Trial, TrialError, wall_ns};

/// Small, so that the copy takes little time.
const IMAGE_MIB: u32 = 40;

/// Runs a trial that ends by a cut.
pub(crate) fn run(program: &Path, plan: &Plan, keep: Option<&PathBuf>) -> Result<Outcome, TrialError> {
    let at = |name: &str| plan.folder.join(name).display().to_string();
    for folder in ["disk", "after"] {
        std::fs::create_dir_all(at(folder))?;
    }
    shell(&format!(
        "truncate -s {IMAGE_MIB}M {0} && mkfs.ext4 -q {0} && mount -o loop {0} {1}",
        at("image"),
        at("disk")
    ))?;
    let outcome = cut(program, plan).and_then(|(ended_ns, matched_ns)| {
        shell(&format!("mount -o loop {} {}", at("cut"), at("after")))?;
        let kept = keep.map(|folder| (folder.as_path(), plan.number));
        let outcome = judge::judge(Path::new(&at("after")), ended_ns, matched_ns, kept);
        shell(&format!("umount {}", at("after")))?;
        outcome
    });
    shell(&format!("umount {}", at("disk")))?;
    outcome
}

/// When the power was cut, and when the recorder was first matched.
fn cut(program: &Path, plan: &Plan) -> Result<(u64, Option<u64>), TrialError> {
    let start_ns = now_ns();
    let mut trial = Trial::start(program, plan, &plan.folder.join("disk/a.mcap"))?;
    trial.publish_until(start_ns + plan.end_ns)?;
    let ended_ns = wall_ns();
    let recorder = trial.recorder();
    let folder = plan.folder.display();
    // Stopped, so that the copy is of one moment.
    let copied = shell(&format!("kill -STOP {recorder} && cp --sparse=always {folder}/image {folder}/cut"));
    let matched_ns = trial.kill();
    copied.map(|()| (ended_ns, matched_ns))
}

fn shell(line: &str) -> Result<(), TrialError> {
    let output = Command::new("sh").args(["-c", line]).output()?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(TrialError::Shell { line: line.to_owned(), errors })
}

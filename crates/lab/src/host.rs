//! The machine a run was made on, as far as the system itself reports it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::run::Host;

/// Commit and sources that a program was built from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BuiltFrom {
    /// As [`Host::commit`].
    pub commit: Option<&'static str>,
    /// As [`Host::sources`].
    pub sources: Option<&'static str>,
}

static BUILT_FROM: OnceLock<BuiltFrom> = OnceLock::new();

/// Says which commit and which sources the program was built from, once, before anything is measured: a checkout may have gone on
/// since. `crates/cli/build.rs` finds out. Without it, the commit is the one that is checked out now, and the sources are not known.
pub fn built_from(program: BuiltFrom) {
    // The first caller is right: there is one program.
    let _ = BUILT_FROM.set(program);
}

/// Reads processor, kernel, governor and commit. What cannot be found is left empty.
pub fn describe() -> Host {
    let said = BUILT_FROM.get();
    let uname = rustix::system::uname();
    let kernel = format!(
        "{} {} {}",
        uname.sysname().to_string_lossy(),
        uname.release().to_string_lossy(),
        uname.machine().to_string_lossy()
    );
    Host {
        cpu: cpu_model().unwrap_or_else(|| "unknown".into()),
        cores: noctule_sys::scheduling::allowed_cores().map_or(0, |cores| cores.len() as u32),
        kernel,
        governor: first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        versions: BTreeMap::from([("noctule".into(), env!("CARGO_PKG_VERSION").into())]),
        commit: said.map_or_else(commit, |said| said.commit.map(str::to_owned)),
        sources: said.and_then(|said| said.sources.map(str::to_owned)),
        fingerprint: BTreeMap::new(),
        started_at: rfc3339(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()),
    }
}

fn first_line(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().next().map(|line| line.trim().to_owned())
}

fn cpu_model() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The commit of the checkout this program was built in; `None` once it is installed elsewhere.
fn commit() -> Option<String> {
    let program = std::env::current_exe().ok()?;
    let checkout = program
        .ancestors()
        .find(|folder| folder.join("Cargo.toml").exists() && folder.join(".git").exists())?;
    let git = |arguments: &[&str]| -> Option<String> {
        let output = Command::new("git").arg("-C").arg(checkout as &Path).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|changes| !changes.is_empty());
    Some(if changed { commit + "-dirty" } else { commit })
}

/// Seconds since 1970 as RFC 3339 in UTC, e.g. `2026-11-20T09:30:00Z`.
pub fn rfc3339(since_1970: Duration) -> String {
    let seconds = since_1970.as_secs();
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    // Civil from days, counted in eras of 400 years that begin on 1 March (Howard Hinnant,
    // "chrono-Compatible Low-Level Date Algorithms").
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right_across_leap_years() {
        let at = |seconds| rfc3339(Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(4_107_542_399), "2100-02-28T23:59:59Z");
        assert_eq!(at(1_704_430_803), "2024-01-05T05:00:03Z");
    }

    #[test]
    fn this_machine_has_a_kernel_and_a_core() {
        let host = describe();
        assert!(host.kernel.starts_with("Linux "));
        assert!(host.cores >= 1);
    }
}

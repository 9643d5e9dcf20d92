//! Each check on a made-up machine: found bad, found good, and not to be found out.

use std::fs;

use super::*;

/// A machine that has exactly these files.
fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Machine) {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let machine = Machine { root: root.path().to_owned() };
    (root, machine)
}

type Check = fn(&Machine) -> Finding;

fn state(check: Check, files: &[(&str, &str)]) -> (State, String) {
    let (_root, machine) = machine(files);
    let finding = check(&machine);
    assert!(
        finding.state != State::Bad || finding.remedy.is_some(),
        "{} is bad without a remedy",
        finding.check
    );
    (finding.state, finding.found)
}

#[test]
fn powersave_governor_on_any_core_is_bad() {
    let core = |n: u32| format!("/sys/devices/system/cpu/cpu{n}/cpufreq/scaling_governor");
    let mixed = [(core(0), "performance\n"), (core(1), "powersave\n")];
    let mixed: Vec<(&str, &str)> = mixed.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    assert_eq!(state(governor, &mixed).0, State::Bad);
    assert_eq!(state(governor, &mixed[..1]).0, State::Good);
    assert_eq!(state(governor, &[]).0, State::Unknown);
}

#[test]
fn only_enabled_idle_states_count() {
    let folder = "/sys/devices/system/cpu/cpu0/cpuidle";
    let path = |file: &str| format!("{folder}/{file}");
    let files = |disabled| {
        vec![
            (path("state0/name"), "POLL"),
            (path("state0/latency"), "0"),
            (path("state1/name"), "C6"),
            (path("state1/latency"), "133\n"),
            (path("state1/disable"), disabled),
        ]
    };
    let check = |disabled| {
        let files = files(disabled);
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        state(c_states, &files)
    };
    assert_eq!(check("0"), (State::Bad, "deepest is C6, 133 µs to leave".into()));
    assert_eq!(check("1"), (State::Good, "deepest is POLL, 0 µs".into()));
    assert_eq!(state(c_states, &[]).0, State::Unknown);
}

#[test]
fn slow_clock_source_is_bad() {
    let file = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    assert_eq!(state(clock_source, &[(file, "hpet\n")]).0, State::Bad);
    assert_eq!(state(clock_source, &[(file, "tsc\n")]).0, State::Good);
    assert_eq!(state(clock_source, &[]).0, State::Unknown);
}

#[test]
fn sixteen_millisecond_ftdi_timer_is_bad_and_named_by_port() {
    let timer = "/sys/bus/usb-serial/devices/ttyUSB0/latency_timer";
    assert_eq!(state(ftdi_latency, &[(timer, "16\n")]), (State::Bad, "ttyUSB0: 16 ms".into()));
    assert_eq!(state(ftdi_latency, &[(timer, "1\n")]).0, State::Good);
    assert_eq!(state(ftdi_latency, &[]).0, State::Good);
}

#[test]
fn small_socket_buffers_are_bad() {
    let (receive, send) = ("/proc/sys/net/core/rmem_max", "/proc/sys/net/core/wmem_max");
    assert_eq!(state(socket_buffers, &[(receive, "212992"), (send, "8388608")]).0, State::Bad);
    assert_eq!(state(socket_buffers, &[(receive, "8388608"), (send, "8388608")]).0, State::Good);
    assert_eq!(state(socket_buffers, &[(receive, "8388608")]).0, State::Unknown);
}

#[test]
fn throttling_isolation_pages_and_siblings_are_notes() {
    let throttled = [
        ("/proc/sys/kernel/sched_rt_runtime_us", "950000"),
        ("/proc/sys/kernel/sched_rt_period_us", "1000000"),
    ];
    assert_eq!(state(rt_throttling, &throttled).0, State::Note);
    assert_eq!(state(rt_throttling, &[("/proc/sys/kernel/sched_rt_runtime_us", "-1")]).0, State::Good);
    assert_eq!(state(isolated_cores, &[("/sys/devices/system/cpu/isolated", "\n")]).0, State::Note);
    assert_eq!(
        state(isolated_cores, &[("/sys/devices/system/cpu/isolated", "2-3\n")]),
        (State::Good, "2-3".into())
    );
    let pages = "/sys/kernel/mm/transparent_hugepage/enabled";
    assert_eq!(state(huge_pages, &[(pages, "[always] madvise never")]).0, State::Note);
    assert_eq!(
        state(huge_pages, &[(pages, "always [madvise] never")]),
        (State::Good, "transparent: madvise".into())
    );
    assert_eq!(state(smt, &[("/sys/devices/system/cpu/smt/active", "1")]).0, State::Note);
    assert_eq!(state(smt, &[("/sys/devices/system/cpu/smt/active", "0")]).0, State::Good);
}

#[test]
fn guests_and_busy_machines_are_noted() {
    assert_eq!(state(virtualisation, &[("/proc/cpuinfo", "flags\t: fpu hypervisor lahf")]).0, State::Note);
    assert_eq!(state(virtualisation, &[("/proc/cpuinfo", "flags\t: fpu")]).0, State::Good);
    let with_times =
        [("/proc/cpuinfo", "flags\t: fpu hypervisor"), ("/proc/stat", "cpu  500 0 0 470 0 0 0 30 0 0\n")];
    let found = "guest of a hypervisor; the host took 3.00 % of its cores' time since it started";
    assert_eq!(state(virtualisation, &with_times), (State::Note, found.to_owned()));
    let cores = ("/proc/cpuinfo", "processor\t: 0\nprocessor\t: 1\n");
    assert_eq!(state(load, &[cores, ("/proc/loadavg", "1.50 0.2 0.1 1/99 5")]).0, State::Note);
    assert_eq!(state(load, &[cores, ("/proc/loadavg", "0.10 0.2 0.1 1/99 5")]).0, State::Good);
}

#[test]
fn kernel_without_rt_is_a_note() {
    assert_eq!(state(preemption, &[("/proc/version", "Linux 6.1 #1 SMP PREEMPT_DYNAMIC")]).0, State::Note);
    assert_eq!(state(preemption, &[("/proc/version", "Linux 6.1 #1 SMP PREEMPT_RT")]).0, State::Good);
    let dynamic = ("/proc/version", "Linux version 6.1.0-9 #1 SMP PREEMPT_DYNAMIC");
    let found = |files: &[(&str, &str)]| state(preemption, &[&[dynamic], files].concat()).1;
    // A kernel that can be preempted, and is not: what it was built for, unless its command line or somebody since has changed it.
    let built = (
        "/boot/config-6.1.0-9",
        "CONFIG_PREEMPT_NONE=y\n# CONFIG_PREEMPT is not set\nCONFIG_PREEMPT_DYNAMIC=y\n",
    );
    assert_eq!(found(&[]), "chosen when the kernel starts (PREEMPT_DYNAMIC), and not readable here");
    assert_eq!(found(&[built]), "system calls are not interrupted (preempt=none)");
    assert_eq!(found(&[built, ("/proc/cmdline", "quiet preempt=full ro")]), "preemptible, not PREEMPT_RT");
    let now = ("/sys/kernel/debug/sched/preempt", "none (voluntary) full\n");
    assert_eq!(
        found(&[built, ("/proc/cmdline", "preempt=full"), now]),
        "system calls are not interrupted (preempt=voluntary)"
    );
}

#[test]
fn every_check_has_a_line_in_the_fingerprint() {
    let findings = super::super::examine();
    let fingerprint = super::super::fingerprint(&findings);
    assert_eq!(fingerprint.len(), findings.len(), "names of checks are unique");
    assert!(super::super::render(&findings).lines().count() >= findings.len());
}

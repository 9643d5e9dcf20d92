//! The checks, one function each, in the order shown.

use std::process::Command;

use noctule_sys::scheduling::CoreTime;

use super::{Finding, Machine, State};

pub(super) fn all(machine: &Machine) -> Vec<Finding> {
    vec![
        governor(machine),
        c_states(machine),
        clock_source(machine),
        preemption(machine),
        realtime_permission(),
        memory_lock(),
        rt_throttling(machine),
        huge_pages(machine),
        socket_buffers(machine),
        isolated_cores(machine),
        smt(machine),
        virtualisation(machine),
        load(machine),
        ftdi_latency(machine),
        wifi_power_save(machine),
        super::multicast_rate::multicast_rate(machine),
        clock_sync(machine),
    ]
}

pub(super) fn finding(
    check: &'static str,
    state: State,
    found: impl Into<String>,
    why: &'static str,
) -> Finding {
    Finding { check, state, found: found.into(), why, remedy: None }
}

impl Finding {
    pub(super) fn mend(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }
}

fn governor(machine: &Machine) -> Finding {
    let why = "a governor that lowers the clock adds its ramp-up to the first messages after idling";
    let governors: Vec<String> = machine
        .names("/sys/devices/system/cpu")
        .iter()
        .filter_map(|cpu| machine.text(&format!("/sys/devices/system/cpu/{cpu}/cpufreq/scaling_governor")))
        .collect();
    match governors.first() {
        None => finding("governor", State::Unknown, "the kernel offers none (usual in a guest)", why),
        Some(first) if governors.iter().all(|governor| governor == "performance") => {
            finding("governor", State::Good, first, why)
        }
        Some(_) => {
            let mut governors = governors;
            governors.dedup();
            finding("governor", State::Bad, governors.join(", "), why)
                .mend("cpupower frequency-set -g performance")
        }
    }
}

fn c_states(machine: &Machine) -> Finding {
    const LATENCY_US_MAX: i64 = 10;
    let why = "leaving a deep idle state takes this long, at every wake-up of an idle machine";
    let folder = "/sys/devices/system/cpu/cpu0/cpuidle";
    let mut deepest: Option<(i64, String)> = None;
    for state in machine.names(folder) {
        let of = |file: &str| machine.text(&format!("{folder}/{state}/{file}"));
        let latency_us = of("latency").and_then(|text| text.parse().ok()).unwrap_or(0);
        if of("disable").as_deref() != Some("1")
            && deepest.as_ref().is_none_or(|(deep, _)| latency_us > *deep)
        {
            deepest = Some((latency_us, of("name").unwrap_or(state)));
        }
    }
    match deepest {
        None => finding("c_states", State::Unknown, "the kernel manages none (usual in a guest)", why),
        Some((latency_us, name)) if latency_us <= LATENCY_US_MAX => {
            finding("c_states", State::Good, format!("deepest is {name}, {latency_us} µs"), why)
        }
        Some((latency_us, name)) => {
            finding("c_states", State::Bad, format!("deepest is {name}, {latency_us} µs to leave"), why)
                .mend(format!("cpupower idle-set -D {LATENCY_US_MAX}"))
        }
    }
}

fn clock_source(machine: &Machine) -> Finding {
    let why = "a slow clock source makes every time stamp a system call of up to a microsecond";
    let file = "/sys/devices/system/clocksource/clocksource0";
    match machine.text(&format!("{file}/current_clocksource")) {
        Some(source) if ["tsc", "arch_sys_counter", "kvm-clock"].contains(&source.as_str()) => {
            finding("clock_source", State::Good, source, why)
        }
        Some(source) => finding("clock_source", State::Bad, source, why)
            .mend(format!("echo tsc > {file}/current_clocksource")),
        None => finding("clock_source", State::Unknown, "not readable", why),
    }
}

fn preemption(machine: &Machine) -> Finding {
    let why = "without full preemption a long system call of anyone delays a woken reader, one with a real-time priority, too";
    let version = machine.text("/proc/version").unwrap_or_default();
    let realtime = machine.text("/sys/kernel/realtime").as_deref() == Some("1");
    let noted = |found: String| finding("preemption", State::Note, found, why);
    let remedy = "add preempt=full to the kernel command line, or take a kernel with PREEMPT_RT";
    if realtime || version.contains("PREEMPT_RT") {
        return finding("preemption", State::Good, "PREEMPT_RT", why);
    }
    match preemption_mode(machine, &version).as_deref() {
        Some("full" | "lazy") => noted("preemptible, not PREEMPT_RT".into()),
        Some(mode) => noted(format!("system calls are not interrupted (preempt={mode})")).mend(remedy),
        None if version.contains("PREEMPT_DYNAMIC") => {
            noted("chosen when the kernel starts (PREEMPT_DYNAMIC), and not readable here".into())
                .mend(remedy)
        }
        None if version.contains("PREEMPT") => noted("preemptible, not PREEMPT_RT".into()),
        None => noted("not preemptible".into()),
    }
}

/// Preemption mode of a kernel that has several: as it reports, as it was started, or as it was built.
fn preemption_mode(machine: &Machine, version: &str) -> Option<String> {
    if let Some(text) = machine.text("/sys/kernel/debug/sched/preempt") {
        return text.split(['(', ')']).nth(1).map(str::to_owned);
    }
    let line = machine.text("/proc/cmdline").unwrap_or_default();
    if let Some(mode) = line.split_whitespace().find_map(|word| word.strip_prefix("preempt=")) {
        return Some(mode.to_owned());
    }
    let release = version.split_whitespace().nth(2).unwrap_or_default();
    let built = machine.text(&format!("/boot/config-{release}")).or_else(|| {
        let packed = machine.root.join("proc/config.gz");
        let output = packed.exists().then(|| Command::new("gzip").arg("-dc").arg(packed).output())?.ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    })?;
    let modes = [("NONE", "none"), ("VOLUNTARY", "voluntary"), ("LAZY", "lazy")];
    let chosen = modes.iter().find(|(name, _)| built.contains(&format!("CONFIG_PREEMPT_{name}=y")));
    chosen
        .map(|(_, mode)| (*mode).to_owned())
        .or_else(|| built.contains("CONFIG_PREEMPT=y").then(|| "full".to_owned()))
}

fn realtime_permission() -> Finding {
    use rustix::process::{Resource, getrlimit};
    let why = "without SCHED_FIFO any other process may delay a woken reader by a time slice";
    let limit = getrlimit(Resource::Rtprio).current.unwrap_or(u64::MAX);
    if rustix::process::geteuid().is_root() {
        return finding("realtime_permission", State::Good, "root", why);
    }
    match limit {
        0 => finding("realtime_permission", State::Bad, "rtprio limit 0: SCHED_FIFO is refused", why)
            .mend("echo \"$USER - rtprio 90\" >> /etc/security/limits.conf, then log in again"),
        limit => finding("realtime_permission", State::Good, format!("rtprio limit {limit}"), why),
    }
}

fn memory_lock() -> Finding {
    use rustix::process::{Resource, getrlimit};
    let why = "memory that is not locked can fault while measuring or controlling";
    match getrlimit(Resource::Memlock).current {
        None => finding("memory_lock", State::Good, "unlimited", why),
        Some(_) if rustix::process::geteuid().is_root() => finding("memory_lock", State::Good, "root", why),
        Some(bytes) => finding("memory_lock", State::Note, format!("limit {} KiB", bytes / 1024), why)
            .mend("echo \"$USER - memlock unlimited\" >> /etc/security/limits.conf, then log in again"),
    }
}

fn rt_throttling(machine: &Machine) -> Finding {
    let why = "a spinning SCHED_FIFO process is stopped for the rest of each period once its share is used";
    let period = machine.number("/proc/sys/kernel/sched_rt_period_us").unwrap_or(1_000_000);
    match machine.number("/proc/sys/kernel/sched_rt_runtime_us") {
        Some(runtime) if runtime < 0 || runtime >= period => {
            finding("rt_throttling", State::Good, "off", why)
        }
        Some(runtime) => {
            let found = format!("real-time processes stop after {runtime} of {period} µs");
            finding("rt_throttling", State::Note, found, why).mend("sysctl -w kernel.sched_rt_runtime_us=-1")
        }
        None => finding("rt_throttling", State::Unknown, "not readable", why),
    }
}

fn huge_pages(machine: &Machine) -> Finding {
    let why =
        "transparent huge pages are put together in the background and can stall an access for milliseconds";
    let file = "/sys/kernel/mm/transparent_hugepage/enabled";
    match machine.text(file) {
        Some(text) if text.contains("[always]") => {
            finding("huge_pages", State::Note, "transparent: always", why)
                .mend(format!("echo madvise > {file}"))
        }
        Some(text) => {
            let chosen = text.split(['[', ']']).nth(1).unwrap_or(&text).to_owned();
            finding("huge_pages", State::Good, format!("transparent: {chosen}"), why)
        }
        None => finding("huge_pages", State::Good, "transparent: not built in", why),
    }
}

fn socket_buffers(machine: &Machine) -> Finding {
    const BYTES_MIN: i64 = 4 << 20;
    let why = "a burst or a large message that does not fit the socket buffer is lost without a word";
    let (receive, send) =
        (machine.number("/proc/sys/net/core/rmem_max"), machine.number("/proc/sys/net/core/wmem_max"));
    match (receive, send) {
        (Some(receive), Some(send)) => {
            let found = format!("rmem_max {receive}, wmem_max {send} bytes");
            if receive.min(send) >= BYTES_MIN {
                return finding("socket_buffers", State::Good, found, why);
            }
            finding("socket_buffers", State::Bad, found, why)
                .mend(format!("sysctl -w net.core.rmem_max={BYTES_MIN} net.core.wmem_max={BYTES_MIN}"))
        }
        _ => finding("socket_buffers", State::Unknown, "not readable", why),
    }
}

fn isolated_cores(machine: &Machine) -> Finding {
    let why = "on a core that is not isolated the scheduler may run anything beside the measured process";
    match machine.text("/sys/devices/system/cpu/isolated") {
        Some(cores) if !cores.is_empty() => finding("isolated_cores", State::Good, cores, why),
        Some(_) => finding("isolated_cores", State::Note, "none", why)
            .mend("add isolcpus=N nohz_full=N to the kernel command line"),
        None => finding("isolated_cores", State::Unknown, "not readable", why),
    }
}

fn smt(machine: &Machine) -> Finding {
    let why = "two hyper-threads of one core share it: a busy sibling slows a measured process, and a bounce \
               between siblings is not one between cores";
    match machine.text("/sys/devices/system/cpu/smt/active").as_deref() {
        Some("1") => {
            finding("smt", State::Note, "on", why).mend("echo off > /sys/devices/system/cpu/smt/control")
        }
        Some(_) => finding("smt", State::Good, "off", why),
        None => finding("smt", State::Unknown, "not readable", why),
    }
}

fn virtualisation(machine: &Machine) -> Finding {
    let why = "a guest's wake-up of another core goes through the host, and the host may run somebody else";
    let hypervisor = machine.text("/proc/cpuinfo").is_some_and(|text| text.contains(" hypervisor"));
    if !hypervisor {
        return finding("virtualisation", State::Good, "none seen", why);
    }
    let product = machine.text("/sys/class/dmi/id/product_name").unwrap_or_default();
    let product = if product.is_empty() { String::new() } else { format!(" ({product})") };
    let times = machine.text("/proc/stat").and_then(|text| CoreTime::of_stat(&text));
    let taken = match times.and_then(|times| times.stolen_share_since(CoreTime::default())) {
        Some(share) => {
            format!("; the host took {:.2} % of its cores' time since it started", 100.0 * share)
        }
        None => String::new(),
    };
    finding("virtualisation", State::Note, format!("guest of a hypervisor{product}{taken}"), why)
}

fn load(machine: &Machine) -> Finding {
    let why = "other work takes turns with the measured processes; measure on a quiet machine";
    let cores = machine.text("/proc/cpuinfo").map_or(1, |text| text.matches("processor\t").count().max(1));
    let load = machine.text("/proc/loadavg").and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    match load {
        Some(load) if load < 0.25 * cores as f64 => finding("load", State::Good, format!("{load}"), why),
        Some(load) => {
            finding("load", State::Note, format!("{load} on {cores} cores over the last minute"), why)
        }
        None => finding("load", State::Unknown, "not readable", why),
    }
}

fn ftdi_latency(machine: &Machine) -> Finding {
    let why = "the FTDI chip holds received bytes back until this timer ends or its buffer is full";
    let folder = "/sys/bus/usb-serial/devices";
    let timers: Vec<(String, i64)> = machine
        .names(folder)
        .into_iter()
        .filter_map(|port| Some((port.clone(), machine.number(&format!("{folder}/{port}/latency_timer"))?)))
        .collect();
    match timers.iter().max_by_key(|(_, ms)| *ms) {
        None => finding("ftdi_latency", State::Good, "no FTDI port", why),
        Some((_, ms)) if *ms <= 1 => finding("ftdi_latency", State::Good, "1 ms", why),
        Some((port, ms)) => finding("ftdi_latency", State::Bad, format!("{port}: {ms} ms"), why)
            .mend(format!("echo 1 > {folder}/{port}/latency_timer")),
    }
}

fn wifi_power_save(machine: &Machine) -> Finding {
    let why = "a sleeping Wi-Fi radio fetches waiting packets only at the next beacon, up to 100 ms later";
    let interfaces: Vec<String> = machine
        .names("/sys/class/net")
        .into_iter()
        .filter(|name| machine.exists(&format!("/sys/class/net/{name}/wireless")))
        .collect();
    let Some(interface) = interfaces.first() else {
        return finding("wifi_power_save", State::Good, "no Wi-Fi interface", why);
    };
    let answer = Command::new("iw").args(["dev", interface, "get", "power_save"]).output();
    let answer = answer.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    match answer {
        Ok(answer) if answer.ends_with("off") => {
            finding("wifi_power_save", State::Good, format!("{interface}: off"), why)
        }
        Ok(answer) if answer.ends_with("on") => {
            finding("wifi_power_save", State::Bad, format!("{interface}: on"), why)
                .mend(format!("iw dev {interface} set power_save off"))
        }
        _ => finding("wifi_power_save", State::Unknown, format!("{interface}: `iw` does not say"), why)
            .mend("apt-get install iw"),
    }
}

fn clock_sync(machine: &Machine) -> Finding {
    let why = "stamps of two hosts can only be compared within the error of their clocks; the lab's own \
               one-way figures do not depend on it";
    let daemons: Vec<String> = machine
        .names("/proc")
        .iter()
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .filter_map(|process| machine.text(&format!("/proc/{process}/comm")))
        .filter(|name| ["chronyd", "ntpd", "systemd-timesyn", "ptp4l", "phc2sys"].contains(&name.as_str()))
        .collect();
    let by = if daemons.is_empty() { "by no daemon seen here".to_owned() } else { daemons.join(", ") };
    match noctule_sys::clock::synchronisation() {
        Ok((true, error_us)) => {
            finding("clock_sync", State::Good, format!("synchronised ({by}), error ≤ {error_us} µs"), why)
        }
        Ok((false, _)) => finding("clock_sync", State::Note, format!("not synchronised ({by})"), why)
            .mend("apt-get install chrony"),
        Err(_) => finding("clock_sync", State::Unknown, "the kernel does not say", why),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

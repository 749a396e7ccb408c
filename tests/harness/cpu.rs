//! What a process costs, for benchmarks. Source of all numbers: proc(5).

/// Seconds of CPU that a process took, and the children that it has waited for: fields 14 to 17 of
/// `stat`, in ticks of 1/100 s.
///
/// # Panics
/// When it does not run.
pub fn seconds(pid: u32) -> [f64; 2] {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process runs");
    let after_name = stat.rsplit_once(')').expect("stat has a name in brackets").1;
    let ticks: Vec<f64> = after_name
        .split_whitespace()
        .skip(11)
        .take(4)
        .filter_map(|field| field.parse().ok())
        .collect();
    [(ticks[0] + ticks[1]) / 100.0, (ticks[2] + ticks[3]) / 100.0]
}

/// Resident memory of a process, MiB: `VmRSS` of `status`.
///
/// # Panics
/// When it does not run.
pub fn resident_mib(pid: u32) -> f64 {
    memory_mib(pid, "VmRSS:")
}

/// The most that it ever was, MiB: `VmHWM` of `status`.
///
/// # Panics
/// When it does not run.
pub fn most_resident_mib(pid: u32) -> f64 {
    memory_mib(pid, "VmHWM:")
}

fn memory_mib(pid: u32, field: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = status.lines().find(|line| line.starts_with(field)).expect("status has the field");
    let kib: f64 = line
        .split_whitespace()
        .nth(1)
        .and_then(|number| number.parse().ok())
        .expect("it is a number");
    kib / 1024.0
}

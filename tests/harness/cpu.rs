//! What a process costs, for benchmarks. Source of all numbers: proc(5).

/// Seconds of CPU that a process took, and the children that it has waited for: fields 14 to 17 of `stat`, in ticks of
/// 1/100 s.
///
/// # Panics
/// When it does not run.
pub fn seconds(pid: u32) -> [f64; 2] {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process runs");
    let after_name = stat.rsplit_once(')').expect("stat has a name in brackets").1;
    let ticks: Vec<f64> = after_name.split_whitespace().skip(11).take(4).filter_map(|field| field.parse().ok()).collect();
    [(ticks[0] + ticks[1]) / 100.0, (ticks[2] + ticks[3]) / 100.0]
}

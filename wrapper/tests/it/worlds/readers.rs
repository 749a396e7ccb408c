//! Whoever takes our output takes it slowly, or stops.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

use crate::deliver;
use crate::run::{Digest, Running, SOON, Wrapper, until};
use crate::scheduler::Scheduler;
use crate::skipped;

/// What a test's pipes hold.
const PIPE_BYTES: usize = 1 << 20;

/// Most memory of a wrapper, however slow its readers: its own, of a debug build, and some
/// megabytes of what waits.
const MEMORY_BYTES: u64 = 32 << 20;

/// The most memory that a process has had so far, bytes; 0 when it is over.
fn peak(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or(0, |line| line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() * 1024)
}

/// Reads to the end, a little whenever the pipe is full, so that something always waits to be
/// shown. Returns what came, and the most memory that the process had.
fn throttled(mut from: std::fs::File, pid: u32) -> ((u64, schema::id::BlobId), u64) {
    rustix::pipe::fcntl_setpipe_size(&from, PIPE_BYTES).unwrap();
    let (mut digest, mut most, mut piece) = (Digest::default(), 0, vec![0; PIPE_BYTES / 8]);
    loop {
        let is_full = || {
            let mut poll = [PollFd::new(&from, PollFlags::IN)];
            rustix::event::poll(&mut poll, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap();
            let waiting = rustix::io::ioctl_fionread(&from).unwrap();
            (poll[0].revents().contains(PollFlags::HUP) || waiting >= PIPE_BYTES as u64 * 7 / 8)
                .then_some(())
        };
        until("the pipe is full or nobody writes any more", is_full);
        most = most.max(peak(pid));
        match from.read(&mut piece).unwrap() {
            0 => return (digest.finish(), most),
            count => digest.write_all(&piece[..count]).unwrap(),
        }
    }
}

/// Runs a script whose streams are read slowly, and holds its memory to its limit.
fn slowly(wrapper: Wrapper, expected: [u64; 2]) {
    let mut running = wrapper.spawn();
    let pid = running.child.id();
    let stdout = std::fs::File::from(OwnedFd::from(running.child.stdout.take().unwrap()));
    let stderr = std::fs::File::from(OwnedFd::from(running.child.stderr.take().unwrap()));
    let other = std::thread::spawn(move || throttled(stderr, pid));
    let (stdout, most) = throttled(stdout, pid);
    let (stderr, beside) = other.join().unwrap();
    let run = running.wait();
    assert_eq!([stdout.0, stderr.0], expected);
    assert_eq!(
        [Some(stdout.1), Some(stderr.1)],
        [run.report.stdout_blob_id, run.report.stderr_blob_id]
    );
    let most = most.max(beside);
    assert!(most > 0 && most < MEMORY_BYTES, "{} MiB", most >> 20);
}

#[test]
fn memory_is_flat_however_slow_the_reader_of_a_stream_is() {
    let bytes = crate::sized(192 << 20, 1 << 30);
    let flags = ["--max-output", "4000000000"];
    slowly(Wrapper::new(&flags, &["head", "-c", &bytes.to_string(), "/dev/zero"]), [bytes, 0]);
}

#[test]
fn memory_is_flat_however_slow_the_readers_of_both_streams_are() {
    let bytes = crate::sized(96 << 20, 1 << 30);
    let script = format!("head -c {bytes} /dev/zero & head -c {bytes} /dev/zero >&2; wait");
    slowly(Wrapper::new(&["--max-output", "4000000000"], &["sh", "-c", &script]), [bytes, bytes]);
}

#[test]
fn memory_is_flat_with_secrets_and_a_slow_reader() {
    let bytes = crate::sized(96 << 20, 1 << 30);
    let wrapper = Wrapper::new(
        &["--max-output", "4000000000"],
        &["head", "-c", &bytes.to_string(), "/dev/zero"],
    );
    slowly(wrapper.env("PVN_SECRET_KEYS", "KEY").env("KEY", "hunter22"), [bytes, 0]);
}

/// Both ends of something that takes nothing more: the one that nobody reads, and the one to write
/// to.
fn stuck_pipe() -> (OwnedFd, OwnedFd) {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    fill(&writer);
    (reader, writer)
}

fn stuck_socket() -> (OwnedFd, OwnedFd) {
    let (reader, writer) = UnixStream::pair().unwrap();
    let writer = OwnedFd::from(writer);
    fill(&writer);
    (reader.into(), writer)
}

fn fill(writer: &OwnedFd) {
    let flags = rustix::fs::fcntl_getfl(writer).unwrap();
    rustix::fs::fcntl_setfl(writer, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
    for size in [4096, 1] {
        while rustix::io::write(writer, &vec![b'x'; size]).is_ok() {}
    }
    rustix::fs::fcntl_setfl(writer, flags).unwrap();
}

/// The end of a run that must come although nobody reads; a wrapper that hangs is killed, so that
/// the test ends.
fn ended(mut running: Running, at_most: Duration) -> i32 {
    let began = Instant::now();
    loop {
        if let Some(status) = running.child.try_wait().unwrap() {
            return status.code().expect("it ends by itself");
        }
        if began.elapsed() > at_most {
            running.child.kill().unwrap();
            running.child.wait().unwrap();
            panic!("it hangs");
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

#[test]
fn a_reader_of_stderr_that_is_stuck_keeps_no_report_from_being_delivered() {
    for (_reader, writer) in [stuck_pipe(), stuck_socket()] {
        let scheduler = Scheduler::start();
        // One message before the start, one after the end.
        let mut wrapper =
            deliver::shell(&scheduler, &["--out", "plan=missing"], "echo out; echo err >&2");
        wrapper = wrapper.env("PVN_SECRET_KEYS", "KEY").env("KEY", "short");
        wrapper.command.stderr(Stdio::from(writer)).stdout(Stdio::null());
        assert_eq!(ended(wrapper.spawn(), SOON), 65);
        assert_eq!(scheduler.check().exit_code, Some(0));
    }
}

#[test]
fn a_pipe_of_another_user_that_is_stuck_keeps_no_report_from_being_delivered() {
    let test = "a_pipe_of_another_user_that_is_stuck_keeps_no_report_from_being_delivered";
    if !rustix::process::geteuid().is_root() {
        return skipped(test, "only root can become another user");
    }
    let (_reader, writer) = stuck_pipe();
    let scheduler = Scheduler::start();
    let mut wrapper =
        deliver::shell(&scheduler, &["--out", "plan=missing"], "echo out; echo err >&2");
    wrapper = wrapper.through("setpriv", ["--reuid", "65534", "--clear-groups", "--"]);
    std::os::unix::fs::chown(wrapper.directory.path(), Some(65534), None).unwrap();
    wrapper.command.stderr(Stdio::from(writer)).stdout(Stdio::null());
    assert_eq!(ended(wrapper.spawn(), SOON), 65);
    scheduler.check();
}

#[test]
fn a_stop_is_heard_although_nobody_reads() {
    let (_reader, writer) = stuck_pipe();
    let scheduler = Scheduler::start();
    let mut wrapper =
        deliver::shell(&scheduler, &[], "echo > ready; while :; do echo line >&2; done");
    wrapper.command.stderr(Stdio::from(writer)).stdout(Stdio::null());
    let running = wrapper.spawn();
    running.until_written("ready");
    running.signal(15);
    assert_eq!(ended(running, SOON), 143);
    assert_eq!(scheduler.check().signal.as_deref(), Some("SIGTERM"));
}

#[test]
fn a_reader_of_the_report_that_is_stuck_keeps_nothing_from_being_delivered() {
    for (_reader, writer) in [stuck_pipe(), stuck_socket()] {
        let scheduler = Scheduler::start();
        let mut wrapper = deliver::shell(&scheduler, &["--report", "-"], "true");
        wrapper.command.stdout(Stdio::from(writer)).stderr(Stdio::null());
        assert_eq!(ended(wrapper.spawn(), SOON), 0);
        scheduler.check();
    }
}

#[test]
fn a_fifo_that_nobody_reads_takes_no_report_and_holds_up_nothing() {
    let scheduler = Scheduler::start();
    let mut wrapper = deliver::shell(&scheduler, &["--report", "fifo"], "true");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        wrapper.path("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    wrapper.command.stdout(Stdio::null()).stderr(Stdio::null());
    assert_eq!(ended(wrapper.spawn(), SOON), 0);
    scheduler.check();
}

#[test]
fn usage_errors_of_a_job_are_reported_although_nobody_reads_them() {
    let (_reader, writer) = stuck_pipe();
    let scheduler = Scheduler::start();
    let mut wrapper = deliver::shell(&scheduler, &["--nonsense"], "true");
    wrapper.command.stderr(Stdio::from(writer)).stdout(Stdio::null());
    assert_eq!(ended(wrapper.spawn(), SOON), 125);
    assert!(scheduler.check().exec_error.unwrap().contains("--nonsense"));
}

//! 2,000 orphans that end all at once when the command does: how long until the last is reaped and
//! the wrapper has ended.

use std::process::Stdio;
use std::time::Instant;

use crate::{Bench, ms, row};

const ORPHANS: &str = "2000";

/// Forks them twice, so that they are nobody's, and leaves them waiting for the end of a pipe that
/// only the command holds.
const FORK: &str = "pipe(R, W); pipe(S, T); for (1..$ARGV[0]) { if (fork() == 0) { if (fork() == \
                    0) { close W; close S; close STDOUT; syswrite T, 'x'; sysread R, $x, 1; exit \
                    } exit } } for (1..$ARGV[0]) { wait; } for (1..$ARGV[0]) { sysread S, $x, 1 } \
                    $| = 1; print qq(all\\n);";

pub(crate) fn table(bench: &Bench) {
    let mut command = bench.exec();
    let mut running = command
        .args(["--drain", "20s", "--", "perl", "-e", FORK, ORPHANS])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it can be started");
    let mut line = [0; 4];
    let mut stdout = running.stdout.take().expect("its standard output is a pipe");
    std::io::Read::read_exact(&mut stdout, &mut line)
        .expect("perl-base is installed, and the command makes its orphans");
    let start = Instant::now();
    assert!(running.wait().expect("it ends").success());
    row(
        "2,000 orphans, from the end of the command to ours",
        ms(start.elapsed()),
        "ms",
        "under 500",
    );
}

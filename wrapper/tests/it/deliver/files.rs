//! Declared outputs on their way to the scheduler.

use schema::id::BlobId;

use super::{check, shell};
use crate::run::Run;
use crate::scheduler::{Do, Reply, Scheduler};

/// Runs a script that leaves `out.bin`; `error`: what the report says of it.
fn collected(script: &str, code: i32, error: Option<&str>) -> Run {
    let scheduler = Scheduler::start();
    let run = shell(&scheduler, &["--out", "plan=out.bin"], script).run();
    assert_eq!(run.code, code, "{}", run.stderr);
    check(&scheduler, &run);
    let file = &run.report.files[0];
    match error {
        None => {
            let blob = schema::id::BlobId::from_digest(digest(&run.path("out.bin")));
            assert_eq!(
                (scheduler.state().files.get("plan").copied(), file.content_blob_id),
                (Some(blob), Some(blob))
            );
        }
        Some(error) => {
            assert!(file.error.as_ref().unwrap().contains(error), "{file:?}");
            assert_eq!(scheduler.count("PUT /files"), 0);
        }
    }
    run
}

fn digest(path: &std::path::Path) -> [u8; 32] {
    use sha2::{Digest, Sha256};
    let mut sha = Sha256::new();
    let mut file = std::fs::File::open(path).unwrap();
    let mut piece = vec![0; 1 << 20];
    loop {
        match std::io::Read::read(&mut file, &mut piece).unwrap() {
            0 => return sha.finalize().into(),
            count => sha.update(&piece[..count]),
        }
    }
}

#[test]
fn output_file() {
    collected("printf 'a\\0b' > out.bin", 0, None);
    collected(": > out.bin", 0, None);
}

#[test]
fn output_file_in_pieces() {
    collected("head -c 20000000 /dev/urandom > out.bin", 0, None);
    // Just at the limit, and one beyond.
    collected("head -c 8388608 /dev/urandom > out.bin", 0, None);
    collected("head -c 8388609 /dev/urandom > out.bin", 0, None);
}

#[test]
fn output_directory() {
    collected("mkdir out.bin", 65, Some("no regular file"));
}

#[test]
fn output_symlink() {
    collected("echo x > real; ln -s real out.bin", 0, None);
    collected("ln -s nowhere out.bin", 65, Some("there is no file"));
}

#[test]
fn output_fifo() {
    collected("mkfifo out.bin", 65, Some("no regular file"));
}

#[test]
fn output_device() {
    collected("ln -s /dev/zero out.bin", 65, Some("no regular file"));
}

#[test]
fn output_sparse_1_gb() {
    // The test of every day moves an eighth of it.
    let size = crate::sized("128M", "1G");
    collected(&format!("truncate -s {size} out.bin"), 0, None);
}

#[test]
fn output_missing() {
    collected("true", 65, Some("there is no file"));
}

#[test]
fn a_file_whose_connection_breaks_in_the_middle_arrives_whole() {
    let scheduler = Scheduler::start().with(|request, number| match number {
        0 | 2 if request.is("PUT", "/files/plan") => Do::Break,
        3 if request.is("PUT", "/files/plan") => Do::ActThen(None),
        _ => Do::Usual,
    });
    let run =
        shell(&scheduler, &["--out", "plan=out.bin"], "head -c 20000000 /dev/urandom > out.bin")
            .run();
    check(&scheduler, &run);
    assert_eq!(scheduler.state().files["plan"], BlobId::from_digest(digest(&run.path("out.bin"))));
}

#[test]
fn a_file_that_the_scheduler_does_not_take_is_told_as_missing_and_the_report_arrives() {
    let scheduler = Scheduler::start().with(|request, _| match request.is("PUT", "/files/plan") {
        true => Do::Answer(Reply::problem(413, "too large for us")),
        false => Do::Usual,
    });
    let run = shell(&scheduler, &["--out", "plan=out.bin"], "echo x > out.bin").run();
    assert_eq!(run.code, 0);
    let file = &scheduler.check().files[0];
    assert!(
        file.content_blob_id.is_none() && file.error.as_ref().unwrap().contains("too large for us"),
        "{file:?}"
    );
}

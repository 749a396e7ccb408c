//! A disk that is small enough to be filled, and a database that somebody else holds.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A small file system of its own; unmounted when dropped.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one of this size (`16m`) at a path; `None` where that needs more rights than we have.
    ///
    /// # Panics
    /// When the directory cannot be made.
    pub fn mount(path: &Path, size: &str) -> Option<Self> {
        Self::mount_with(path, &format!("size={size}"))
    }

    /// The same of this size and with room for so many files (inodes).
    ///
    /// # Panics
    /// When the directory cannot be made.
    pub fn mount_for_files(path: &Path, size: &str, files: u32) -> Option<Self> {
        Self::mount_with(path, &format!("size={size},nr_inodes={files}"))
    }

    fn mount_with(path: &Path, options: &str) -> Option<Self> {
        std::fs::create_dir_all(path).expect("a directory can be made");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(path).output();
        mount.is_ok_and(|output| output.status.success()).then(|| Self(path.to_owned()))
    }

    /// Takes all the room there is.
    ///
    /// # Panics
    /// When no file can be made, not even an empty one.
    pub fn fill(&self) {
        let mut file = std::fs::File::create(self.0.join("filler")).expect("a file can be made");
        for size in [1 << 16, 1 << 12, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
    }

    /// Makes as many empty files as there is room for.
    ///
    /// # Panics
    /// When no directory can be made for them.
    pub fn fill_files(&self) {
        let fillers = self.0.join("fillers");
        std::fs::create_dir(&fillers).expect("a directory can be made");
        for number in 0.. {
            if std::fs::File::create(fillers.join(number.to_string())).is_err() {
                return;
            }
        }
    }

    /// Removes those.
    ///
    /// # Panics
    /// When there are none.
    pub fn free_files(&self) {
        std::fs::remove_dir_all(self.0.join("fillers")).expect("files can be removed");
    }

    /// Gives the room back.
    ///
    /// # Panics
    /// When it was not taken.
    pub fn free(&self) {
        std::fs::remove_file(self.0.join("filler")).expect("a file can be removed");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(&self.0).status();
        assert!(
            unmounted.is_ok_and(|status| status.success()),
            "{} stays mounted",
            self.0.display()
        );
    }
}

/// What is mounted below a directory; unmounted when dropped, wherever below it has moved to.
pub struct MountsBelow(PathBuf);

impl MountsBelow {
    /// Mounts a directory at another one within `below`; `None` where that needs more rights than
    /// we have.
    pub fn bind(below: &Path, directory: &Path, at: &Path) -> Option<Self> {
        let mount = Command::new("mount").arg("--bind").args([directory, at]).output();
        mount.is_ok_and(|output| output.status.success()).then(|| Self(below.to_owned()))
    }

    /// Lets nobody write below a mount point among them, or lets all do so again.
    ///
    /// # Panics
    /// When nothing is mounted there.
    pub fn let_write(at: &Path, may: bool) {
        let how = if may { "remount,bind,rw" } else { "remount,bind,ro" };
        let mount = Command::new("mount").args(["-o", how]).arg(at).status();
        assert!(
            mount.is_ok_and(|status| status.success()),
            "{} cannot be mounted again",
            at.display()
        );
    }
}

impl Drop for MountsBelow {
    fn drop(&mut self) {
        let mounts = std::fs::read_to_string("/proc/self/mounts").expect("the mounts can be read");
        for at in mounts
            .lines()
            .filter_map(|line| line.split(' ').nth(1))
            .filter(|at| Path::new(at).starts_with(&self.0))
        {
            let unmounted = Command::new("umount").arg("-l").arg(at).status();
            assert!(unmounted.is_ok_and(|status| status.success()), "{at} stays mounted");
        }
    }
}

/// A disk of its own with a real file system, for what only the kernel can do to one. Unmounted
/// when dropped.
pub struct Ext4Disk {
    path: PathBuf,
    image: PathBuf,
}

impl Ext4Disk {
    /// Mounts one at a path, kept in a file beside it; `None` where that needs more rights or tools
    /// than we have.
    ///
    /// # Panics
    /// When the directory or the file cannot be made.
    pub fn mount(path: &Path) -> Option<Self> {
        std::fs::create_dir_all(path).expect("a directory can be made");
        let image = path.with_extension("image");
        std::fs::File::create(&image)
            .and_then(|file| file.set_len(200 << 20))
            .expect("a file can be made");
        let made = done(Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0"]).arg(&image))
            && mount_image(&image, path);
        let disk = made.then(|| Self { path: path.to_owned(), image })?;
        std::fs::remove_dir(path.join("lost+found")).expect("it is empty");
        Some(disk)
    }

    fn freezer(&self, how: &str) -> Command {
        let mut command = Command::new("fsfreeze");
        command.arg(how).arg(&self.path);
        command
    }

    /// From now on it does not answer: it neither takes nor refuses what is written. Returns
    /// whether that can be brought about here.
    pub fn hang(&self) -> bool {
        done(&mut self.freezer("-f"))
    }

    /// It goes on where it was.
    ///
    /// # Panics
    /// When it did not hang.
    pub fn go_on(&self) {
        assert!(done(&mut self.freezer("-u")));
    }

    /// An error is found on it, for which it becomes read-only by itself. Returns whether that can
    /// be brought about here.
    pub fn fail(&self) -> bool {
        let found = Command::new("findmnt").args(["-no", "SOURCE"]).arg(&self.path).output();
        let device = found
            .map(|output| String::from_utf8_lossy(&output.stdout).trim().replace("/dev/", ""))
            .unwrap_or_default();
        std::fs::write(format!("/sys/fs/ext4/{device}/trigger_fs_error"), "1").is_ok()
    }

    /// It is checked, and mounted again; nobody may use it.
    ///
    /// # Panics
    /// When it cannot be unmounted, or mounted.
    pub fn repair(&self) {
        assert!(done(Command::new("umount").arg(&self.path)), "{} is in use", self.path.display());
        // Its exit code says that there was something to correct.
        let _corrected = Command::new("e2fsck")
            .args(["-fy"])
            .arg(&self.image)
            .output()
            .expect("e2fsck comes with mkfs.ext4");
        assert!(
            mount_image(&self.image, &self.path),
            "{} cannot be mounted again",
            self.path.display()
        );
    }
}

impl Drop for Ext4Disk {
    fn drop(&mut self) {
        let _may_go_on_already = self.freezer("-u").output();
        assert!(
            done(Command::new("umount").arg("-l").arg(&self.path)),
            "{} stays mounted",
            self.path.display()
        );
    }
}

fn mount_image(image: &Path, path: &Path) -> bool {
    done(Command::new("mount").args(["-o", "loop,errors=remount-ro"]).arg(image).arg(path))
}

fn done(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Changes a database that nobody uses by one statement of SQL, as a hand would. Needs python3.
///
/// # Panics
/// When python3 cannot be started, or the statement changes nothing.
pub fn edit(database: &Path, sql: &str) {
    const SCRIPT: &str = "import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1])\ndone = \
                          db.execute(sys.argv[2]).rowcount\ndb.commit()\ndb.close()\nsys.\
                          exit(done < 1)";
    let done = Command::new("python3")
        .args(["-c", SCRIPT])
        .arg(database)
        .arg(sql)
        .status()
        .expect("python3 can be started");
    assert!(done.success(), "{sql}");
}

/// Another process that keeps a database locked until this is dropped. Needs python3.
pub struct DatabaseLock(Child);

impl DatabaseLock {
    /// Takes the lock; returns once it is held.
    ///
    /// # Panics
    /// When python3 cannot be started or does not get the lock.
    pub fn take(database: &Path) -> Self {
        const SCRIPT: &str = "import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1], timeout=30, \
                              isolation_level=None)\ndb.execute('BEGIN \
                              IMMEDIATE')\nprint('locked', flush=True)\nsys.stdin.read()";
        let mut child = Command::new("python3")
            .args(["-c", SCRIPT])
            .arg(database)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 can be started");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("stdout is a pipe"))
            .read_line(&mut line)
            .expect("python3 can be read");
        assert_eq!(line, "locked\n");
        Self(child)
    }
}

impl Drop for DatabaseLock {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().expect("a child can be waited for");
    }
}

//! An open page that follows what happens, as far as the daemon sees it: the stream of a browser
//! that nobody sits at.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::person::Person;

/// Lets this process have as many connections as the system lets it.
///
/// # Panics
/// When the system refuses what it said is possible.
pub fn allow_many() {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("there is a limit of open files");
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).expect("it can be raised");
}

/// A page that is open and listens.
#[derive(Debug)]
pub struct OpenPage {
    connection: TcpStream,
    heard: String,
    /// Changes that it was told of.
    pub changes: usize,
}

impl OpenPage {
    /// Opens the stream of a page, of one service or of everything.
    ///
    /// # Panics
    /// When the daemon takes no connection.
    pub fn of(person: &Person, query: &str) -> Self {
        let host = person.url().trim_start_matches("http://");
        let mut connection = TcpStream::connect(host).expect("the daemon takes connections");
        let request = format!(
            "GET /live?{query} HTTP/1.1\r\nHost: {host}\r\nCookie: {}\r\nAccept: \
             text/event-stream\r\n\r\n",
            person.cookie()
        );
        connection.write_all(request.as_bytes()).expect("the daemon reads");
        connection.set_nonblocking(true).expect("a connection can be looked at");
        Self { connection, heard: String::new(), changes: 0 }
    }

    /// The head of the answer, once it is there.
    pub fn answer(&mut self) -> Option<&str> {
        self.read();
        self.heard.contains("\r\n\r\n").then_some(self.heard.as_str())
    }

    /// Whether it has heard of this many changes.
    ///
    /// # Panics
    /// When the stream was refused or has ended.
    pub fn has_heard(&mut self, changes: usize) -> bool {
        self.read();
        assert!(
            self.heard.is_empty() || self.heard.starts_with("HTTP/1.1 200"),
            "the stream was refused: {}",
            self.heard
        );
        self.changes = self.heard.matches("event: change").count();
        self.changes >= changes
    }

    fn read(&mut self) {
        let mut piece = [0; 4096];
        loop {
            match self.connection.read(&mut piece) {
                Ok(0) => panic!("the stream ended: {}", self.heard),
                Ok(bytes) => self.heard += &String::from_utf8_lossy(&piece[..bytes]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("the stream broke: {error}"),
            }
        }
    }
}

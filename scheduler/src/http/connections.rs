//! Which connections are let in, and how long one may hang. Whoever only opens connections costs
//! nobody else theirs: one address never has all of them, a few are kept for this machine, and
//! where there is no room the oldest that has not said a word makes way. Waiting for the head of a
//! request is hyper's business (`serve` tells it for how long), waiting for a client that does not
//! read is ours. Called by `serve`, before TLS.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum_server::accept::Accept;
use futures::future::{Ready, ready};
use futures::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use super::limits::ConnectionLimits;

/// Lets connections in; clones count together.
#[derive(Clone)]
pub(super) struct Connections {
    room: Arc<Mutex<ConnectionSlots>>,
    limits: ConnectionLimits,
}

/// Who is in.
#[derive(Default)]
struct ConnectionSlots {
    open: usize,
    by_address: HashMap<IpAddr, usize>,
    /// Those that have not sent a byte, oldest first.
    silent: BTreeMap<u64, Arc<Silent>>,
    next: u64,
}

/// A connection that can be sent away.
struct Silent {
    address: IpAddr,
    is_sent_away: AtomicBool,
    reader: AtomicWaker,
}

impl Connections {
    /// Nobody is in yet.
    pub(super) fn new(limits: ConnectionLimits) -> Self {
        Self { room: Arc::default(), limits }
    }

    /// A place for a connection from this address; `None` when there is none.
    fn admit(&self, address: IpAddr) -> Option<ConnectionSlot> {
        let address = address.to_canonical();
        let mut room = lock(&self.room);
        let most = self.limits.all
            - if address.is_loopback() { 0 } else { self.limits.kept_for_this_machine };
        let of_address =
            |room: &ConnectionSlots| room.by_address.get(&address).copied().unwrap_or(0);
        if of_address(&room) >= self.limits.of_one_address {
            room.send_away(|silent| silent.address == address)?;
        }
        if room.open >= most {
            room.send_away(|_| true)?;
        }
        if room.open >= most || of_address(&room) >= self.limits.of_one_address {
            return None;
        }
        let number = room.next;
        room.next += 1;
        room.open += 1;
        *room.by_address.entry(address).or_default() += 1;
        let silent = Arc::new(Silent {
            address,
            is_sent_away: AtomicBool::new(false),
            reader: AtomicWaker::new(),
        });
        room.silent.insert(number, Arc::clone(&silent));
        Some(ConnectionSlot { room: Arc::clone(&self.room), number, silent, has_spoken: false })
    }
}

impl ConnectionSlots {
    /// Sends away the oldest silent one that fits; its place is free at once. `None` when there is
    /// none.
    fn send_away(&mut self, fits: impl Fn(&Silent) -> bool) -> Option<()> {
        let number =
            self.silent.iter().find(|(_, silent)| fits(silent)).map(|(number, _)| *number)?;
        let silent = self.silent.remove(&number)?;
        self.leave(silent.address);
        silent.is_sent_away.store(true, Ordering::Release);
        silent.reader.wake();
        Some(())
    }

    fn leave(&mut self, address: IpAddr) {
        self.open -= 1;
        if let Some(count) = self.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
    }
}

/// Nothing panics while it is held; if it did, the counts would be whole all the same.
fn lock(room: &Mutex<ConnectionSlots>) -> MutexGuard<'_, ConnectionSlots> {
    room.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection's place, given back when it is dropped.
struct ConnectionSlot {
    room: Arc<Mutex<ConnectionSlots>>,
    number: u64,
    silent: Arc<Silent>,
    has_spoken: bool,
}

impl ConnectionSlot {
    fn speaks(&mut self) {
        if !self.has_spoken {
            self.has_spoken = true;
            lock(&self.room).silent.remove(&self.number);
        }
    }

    fn is_sent_away(&self) -> bool {
        self.silent.is_sent_away.load(Ordering::Acquire)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut room = lock(&self.room);
        room.silent.remove(&self.number);
        if !self.is_sent_away() {
            room.leave(self.silent.address);
        }
    }
}

impl<S> Accept<TcpStream, S> for Connections {
    type Stream = OpenConnection;
    type Service = S;
    type Future = Ready<io::Result<(OpenConnection, S)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let admit = || {
            stream.set_nodelay(true)?;
            let address = stream.peer_addr()?.ip();
            self.admit(address).ok_or_else(|| io::Error::other("too many connections"))
        };
        let place = admit();
        ready(place.map(|place| {
            (OpenConnection { stream, place, stuck: None, limits: self.limits }, service)
        }))
    }
}

/// A connection that has a place.
pub(super) struct OpenConnection {
    stream: TcpStream,
    place: ConnectionSlot,
    /// Until when the client has to take something, while it takes nothing.
    stuck: Option<Pin<Box<Sleep>>>,
    limits: ConnectionLimits,
}

impl AsyncRead for OpenConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.place.has_spoken {
            self.place.silent.reader.register(context.waker());
            if self.place.is_sent_away() {
                return Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::ConnectionAborted,
                    "made room for another connection",
                )));
            }
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.place.speaks();
        }
        read
    }
}

impl AsyncWrite for OpenConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.stream).poll_write(context, bytes) {
            Poll::Ready(written) => {
                self.stuck = None;
                Poll::Ready(written)
            }
            Poll::Pending => {
                let within = self.limits.write_silence;
                let stuck = self.stuck.get_or_insert_with(|| Box::pin(tokio::time::sleep(within)));
                stuck.as_mut().poll(context).map(|()| {
                    Err(io::Error::new(io::ErrorKind::TimedOut, "the client reads nothing"))
                })
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn connections() -> Connections {
        let second = Duration::from_secs(1);
        Connections::new(ConnectionLimits {
            all: 4,
            of_one_address: 3,
            kept_for_this_machine: 1,
            head: second,
            write_silence: second,
            ..ConnectionLimits::default()
        })
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn one_address_never_has_all_places_and_a_place_left_is_free_again() {
        let connections = connections();
        let admit = |from: &str| {
            connections.admit(address(from)).map(|mut place| {
                place.speaks();
                place
            })
        };
        let first: Vec<_> = (0..2).map(|_| admit("10.0.0.1").unwrap()).collect();
        let other = admit("10.0.0.2").unwrap();
        assert!(admit("10.0.0.3").is_none(), "the last place is this machine's");
        let local = admit("::ffff:127.0.0.1").unwrap();
        assert!(admit("127.0.0.1").is_none(), "all places are taken");
        drop(other);
        let third = admit("127.0.0.1").unwrap();
        drop((first, local, third));
        let all: Vec<_> = (0..3).map(|_| admit("127.0.0.1").unwrap()).collect();
        assert!(admit("127.0.0.1").is_none(), "three of one address are enough");
        assert!(admit("127.0.0.2").is_some());
        drop(all);
        assert!(lock(&connections.room).by_address.is_empty());
        assert_eq!(lock(&connections.room).open, 0);
    }

    #[test]
    fn the_oldest_that_has_not_said_a_word_makes_way() {
        let connections = connections();
        let mut places: Vec<_> =
            (0..3).map(|_| connections.admit(address("10.0.0.1")).unwrap()).collect();
        places[0].speaks();
        places.push(connections.admit(address("10.0.0.1")).unwrap());
        places.push(connections.admit(address("10.0.0.2")).unwrap());
        assert_eq!(
            places.iter().map(ConnectionSlot::is_sent_away).collect::<Vec<_>>(),
            [false, true, true, false, false]
        );
        places.iter_mut().filter(|place| !place.is_sent_away()).for_each(ConnectionSlot::speaks);
        assert!(connections.admit(address("10.0.0.2")).is_none(), "all have spoken");
        drop(places);
        assert_eq!(lock(&connections.room).open, 0);
    }
}
